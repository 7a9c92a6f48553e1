import { CreateAnnouncementDto } from '#outbound/campaigns/announcement.dto.js';
import {
  findThresholdIssue,
  RULE_KINDS,
  type Occasion,
  type RuleKind,
} from '#outbound/campaigns/campaign.js';
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

/** What a new rule has for a threshold. */
export const DEFAULT_THRESHOLDS: Record<RuleKind, number | null> = {
  stamps_away: 1,
  reward_unused: 14,
  birthday: null,
  inactive: 60,
};

/** Finds a kind of rule by its name. */
export function findKind(value: unknown): RuleKind | undefined {
  return RULE_KINDS.find((kind) => kind === value);
}

/** Parses what decides whom a preview shows. @returns null for anything but a positive number */
export function parseNumber(text: string): number | null {
  return /^[1-9]\d{0,8}$/.test(text.trim()) ? Number(text) : null;
}

/** Parses when a rule writes. @returns null when its threshold does not suit it */
export function parseOccasion(
  kind: RuleKind,
  { threshold, card_id }: Pick<RuleForm, 'threshold' | 'card_id'>,
): Occasion | null {
  const occasion = { kind, threshold: parseNumber(threshold), cardId: parseNumber(card_id) };
  if (kind === 'birthday') return { ...occasion, threshold: null };
  return findThresholdIssue(kind, occasion.threshold) === undefined ? occasion : null;
}
