import { CreateAnnouncementDto } from '#outbound/campaigns/announcement.dto.js';
import { CreateMessageRuleDto } from '#outbound/campaigns/message-rule.dto.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';

export const announcementForm = defineForm(CreateAnnouncementDto, [
  'title',
  'text',
  'channels',
  'card_id',
  'min_stamps',
  'birthday_month',
  'inactive_since',
]);
export type AnnouncementForm = ValuesOf<typeof announcementForm>;

/** The kind is chosen on a page before. */
export const ruleForm = defineForm(CreateMessageRuleDto, [
  'title',
  'text',
  'channels',
  'card_id',
  'threshold',
]);
export type RuleForm = ValuesOf<typeof ruleForm>;
