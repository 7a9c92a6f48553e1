import { getLocalDay } from '#kernel/zoned-time.js';
import type { Form } from '#http/body-kinds.js';
import type { Translations } from '#translations/translations.js';
import type { Card } from '#cards/card.js';
import type { StripPreset } from '#cards/card-appearance.js';
import type { Reward } from '#rewards/reward.js';
import { CARD_TEMPLATES } from './card-templates.js';

/** Named as the errors of the API name them. */
const TEXT_FIELDS = [
  'name',
  'header_text',
  'card_color',
  'text_color',
  'stamp_icon',
  'stamp_color',
  'stamp_background_color',
  'stamps_required',
  'initial_stamps',
  'strip_type',
  'strip_color',
  'strip_opacity',
  'strip_preset',
  'aux_label_1',
  'aux_value_1',
  'aux_label_2',
  'aux_value_2',
  'expires_on',
  'max_stamps_per_request',
  'max_stamps_per_day',
  'min_seconds_between_stamps',
  'barcode_format',
  'stamp_message',
  'reward_message',
  'redemption_message',
] as const;
const BOXES = ['show_member_field', 'show_stamps_to_reward_field', 'strip_color_same'] as const;

export type DesignFields = Record<(typeof TEXT_FIELDS)[number], string> &
  Record<(typeof BOXES)[number], boolean>;

/** A reward as entered. @property id empty: it is new */
export type RewardRow = {
  id: string;
  name: string;
  stamps: string;
  description: string;
  isRemoved: boolean;
};

export type DesignForm = { fields: DesignFields; rewards: RewardRow[] };

/** More rows than anybody fills in on one page; the rest is added on the next. */
export const MAX_ROWS = 30;
const NEW_ROW: RewardRow = { id: '', name: '', stamps: '', description: '', isRemoved: false };

/** Reads the entered values, which are shown again with errors. */
export function readDesignForm(form: Form): DesignForm {
  const read = (name: string) => form[name] ?? '';
  const texts = TEXT_FIELDS.map((name) => [name, read(name).trim()]);
  const boxes = BOXES.map((name) => [name, form[name] !== undefined]);
  const rewards: RewardRow[] = [];
  for (let row = 0; row < MAX_ROWS && form[`reward_${row}_name`] !== undefined; row++) {
    rewards.push({
      id: read(`reward_${row}_id`),
      name: read(`reward_${row}_name`).trim(),
      stamps: read(`reward_${row}_stamps`).trim(),
      description: read(`reward_${row}_description`).trim(),
      isRemoved: form[`reward_${row}_removed`] !== undefined,
    });
  }
  return { fields: Object.fromEntries([...texts, ...boxes]) as DesignFields, rewards };
}

export function toDesignForm(card: Card, rewards: readonly Reward[], timeZone: string): DesignForm {
  const [first, second] = card.auxiliaryFields;
  return {
    fields: {
      name: card.name,
      header_text: card.headerText ?? '',
      card_color: card.cardColor,
      text_color: card.textColor,
      stamp_icon: card.stampIcon,
      stamp_color: card.stampColor,
      stamp_background_color: card.stampBackgroundColor,
      stamps_required: String(card.stampsRequired),
      initial_stamps: String(card.initialStamps),
      strip_type: card.stripType,
      strip_color: card.stripColor ?? card.cardColor,
      strip_color_same: card.stripColor === null,
      strip_opacity: String(card.stripOpacity),
      strip_preset: card.stripPreset ?? '',
      aux_label_1: first?.label ?? '',
      aux_value_1: first?.value ?? '',
      aux_label_2: second?.label ?? '',
      aux_value_2: second?.value ?? '',
      show_member_field: card.showMemberField,
      show_stamps_to_reward_field: card.showStampsToRewardField,
      expires_on: toLastDay(card.expiresAt, timeZone),
      max_stamps_per_request: toText(card.maxStampsPerRequest),
      max_stamps_per_day: toText(card.maxStampsPerDay),
      min_seconds_between_stamps: toText(card.minSecondsBetweenStamps),
      barcode_format: card.barcodeFormat,
      stamp_message: card.stampMessage ?? '',
      reward_message: card.rewardMessage ?? '',
      redemption_message: card.redemptionMessage ?? '',
    },
    rewards: rewards.map(({ id, name, stampsRequired, description }) => ({
      id: String(id),
      name,
      stamps: String(stampsRequired),
      description: description ?? '',
      isRemoved: false,
    })),
  };
}

/** Fills the form of a new card. @param key null: without a template */
export function createDesignForm(
  key: StripPreset | null,
  texts: Translations['cardPages']['templates'],
): DesignForm {
  const template = CARD_TEMPLATES[key ?? 'coffee'];
  const stampsRequired = String(template.stampsRequired);
  return {
    fields: {
      name: key === null ? '' : texts[key].name,
      header_text: '',
      card_color: template.cardColor,
      text_color: template.textColor,
      stamp_icon: key === null ? 'star' : template.icon,
      stamp_color: template.stampColor,
      stamp_background_color: template.stampBackgroundColor,
      stamps_required: stampsRequired,
      initial_stamps: '0',
      strip_type: key === null ? 'color' : 'preset',
      strip_color: template.cardColor,
      strip_color_same: true,
      strip_opacity: '100',
      strip_preset: key ?? '',
      aux_label_1: '',
      aux_value_1: '',
      aux_label_2: '',
      aux_value_2: '',
      show_member_field: true,
      show_stamps_to_reward_field: true,
      expires_on: '',
      max_stamps_per_request: '',
      max_stamps_per_day: '',
      min_seconds_between_stamps: '',
      barcode_format: 'qr',
      stamp_message: '',
      reward_message: '',
      redemption_message: '',
    },
    rewards: key === null ? [] : [{ ...NEW_ROW, name: texts[key].reward, stamps: stampsRequired }],
  };
}

/** Adds an empty row to enter another reward without a script. */
export function withEmptyRow(rewards: RewardRow[]): RewardRow[] {
  const hasEmpty = rewards.some((row) => row.id === '' && isEmptyRow(row));
  return hasEmpty || rewards.length >= MAX_ROWS ? rewards : [...rewards, NEW_ROW];
}

/** Tells whether nothing was entered in a row. */
export function isEmptyRow({ name, stamps, description }: RewardRow): boolean {
  return name === '' && stamps === '' && description === '';
}

function toText(count: number | null): string {
  return count === null ? '' : String(count);
}

/** Returns the last day on which a card is valid: one that expires at midnight is valid the day before. */
export function toLastDay(expiresAt: string | null, timeZone: string): string {
  return expiresAt === null ? '' : getLocalDay(timeZone, Date.parse(expiresAt) - 1);
}
