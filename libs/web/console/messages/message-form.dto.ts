import { readFields } from '#platform/http/dtos.js';
import type { Form } from '#platform/http/body-kinds.js';
import {
  CreateAnnouncementDto,
  PreviewAnnouncementDto,
  type AnnouncementJson,
} from '#outbound/announcements/announcement.dto.js';
import { CHANNELS, type HolderChannel } from '#outbound/announcements/message-channel.js';
import {
  CreateMessageRuleDto,
  type MessageRuleJson,
} from '#outbound/announcements/message-rule.dto.js';
import type { RuleKind } from '#outbound/announcements/message-rule.js';

/** The fields that both kinds of messages have, as they were entered. */
type ContentForm = { title: string; text: string; channels: HolderChannel[]; card_id: string };

export type AnnouncementForm = ContentForm &
  Record<'min_stamps' | 'birthday_month' | 'inactive_since', string>;

export type RuleForm = ContentForm & { kind: RuleKind; threshold: string };

const DEFAULT_THRESHOLDS: Record<RuleKind, string> = {
  stamps_away: '1',
  reward_unused: '14',
  birthday: '',
  inactive: '60',
};

export const NEW_ANNOUNCEMENT: AnnouncementForm = {
  title: '',
  text: '',
  channels: [...CHANNELS],
  card_id: '',
  min_stamps: '',
  birthday_month: '',
  inactive_since: '',
};

export function createRuleForm(
  kind: RuleKind,
  suggestion: { title: string; text: string },
): RuleForm {
  const threshold = DEFAULT_THRESHOLDS[kind];
  return { kind, threshold, ...suggestion, channels: [...CHANNELS], card_id: '' };
}

/** @param toDay renders a time as a day of the store */
export function toAnnouncementForm(
  json: AnnouncementJson,
  toDay: (time: string) => string,
): AnnouncementForm {
  return {
    ...toContentForm(json),
    min_stamps: toText(json.min_stamps),
    birthday_month: toText(json.birthday_month),
    inactive_since: json.inactive_since === null ? '' : toDay(json.inactive_since),
  };
}

export function toRuleForm(json: MessageRuleJson): RuleForm {
  return { ...toContentForm(json), kind: json.kind, threshold: toText(json.threshold) };
}

/** Reads the entered values. @param order of the channels, of a message that has one */
export function readAnnouncementForm(
  form: Form,
  order: readonly HolderChannel[] = CHANNELS,
): AnnouncementForm {
  const { min_stamps = '', birthday_month = '', inactive_since = '' } = form;
  return { ...readContent(form, order), min_stamps, birthday_month, inactive_since };
}

export function readRuleForm(
  form: Form,
  kind: RuleKind,
  order: readonly HolderChannel[] = CHANNELS,
): RuleForm {
  return { ...readContent(form, order), kind, threshold: form['threshold'] ?? '' };
}

/** Parses the fields by the rules of the API, in the store's time zone. @throws InvalidFieldsError */
export function parseAnnouncement(form: AnnouncementForm, timeZone: string): CreateAnnouncementDto {
  return readFields(CreateAnnouncementDto, form, timeZone);
}

/** Parses those that decide who gets it. @throws InvalidFieldsError */
export function parseAudience(form: AnnouncementForm, timeZone: string): PreviewAnnouncementDto {
  const { title: _title, text: _text, ...audience } = form;
  return readFields(PreviewAnnouncementDto, audience, timeZone);
}

/** @throws InvalidFieldsError */
export function parseRule(form: RuleForm): CreateMessageRuleDto {
  return readFields(CreateMessageRuleDto, form);
}

function toContentForm(
  json: Pick<AnnouncementJson, 'title' | 'text' | 'channels' | 'card_id'>,
): ContentForm {
  const { title, text, channels, card_id } = json;
  return { title, text, channels, card_id: toText(card_id) };
}

function readContent(form: Form, order: readonly HolderChannel[]): ContentForm {
  const { title = '', text = '', card_id = '' } = form;
  const ordered = [...new Set([...order, ...CHANNELS])];
  const channels = ordered.filter((channel) => form[channel] !== undefined);
  return { title, text: text.replaceAll('\r\n', '\n'), channels, card_id };
}

function toText(value: number | null): string {
  return value === null ? '' : String(value);
}
