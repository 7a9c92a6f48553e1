import { getLocalDay } from '#platform/kernel/zoned-time.js';
import type { FieldsOf } from '#platform/http/resource-fields.js';
import type { CardAttributes } from '#loyalty/cards/card.events.js';
import type { Entered } from '#web/pages/forms.js';

type Fields = FieldsOf<Omit<CardAttributes, 'auxiliaryFields' | 'expiresAt'>>;

/** The entered values. Two texts and the last day stand in the form in another way than in the API. */
export type DesignFields = { [K in keyof Fields]: Entered<Fields[K]['value']> } & Record<
  'aux_label_1' | 'aux_value_1' | 'aux_label_2' | 'aux_value_2' | 'expires_on',
  string
> & { strip_color_same: boolean };

/** A reward as entered. @property id empty: it is new @property isBeyondMeant it needs more than one card on purpose */
export type RewardRow = {
  id: string;
  name: string;
  stamps: string;
  description: string;
  isRemoved: boolean;
  isBeyondMeant: boolean;
};

export type DesignForm = { fields: DesignFields; rewards: RewardRow[] };

/** More rows than anybody fills in on one page; the rest is added on the next. */
export const MAX_ROWS = 30;
export const NEW_ROW: RewardRow = {
  id: '',
  name: '',
  stamps: '',
  description: '',
  isRemoved: false,
  isBeyondMeant: false,
};

/** Adds an empty row to enter another reward without a script. */
export function withEmptyRow(rewards: RewardRow[]): RewardRow[] {
  const hasEmpty = rewards.some((row) => row.id === '' && isEmptyRow(row));
  return hasEmpty || rewards.length >= MAX_ROWS ? rewards : [...rewards, NEW_ROW];
}

/** Tells whether nothing was entered in a row. */
export function isEmptyRow({ name, stamps, description }: RewardRow): boolean {
  return name === '' && stamps === '' && description === '';
}

/** Tells whether a reward needs more stamps than one card has. */
export function isBeyondCard({ stamps, isRemoved }: RewardRow, required: string): boolean {
  return !isRemoved && Number(required) > 0 && Number(stamps) > Number(required);
}

/** Returns the last day on which a card is valid: one that expires at midnight is valid the day before. */
export function toLastDay(expiresAt: string | null, timeZone: string): string {
  return expiresAt === null ? '' : getLocalDay(timeZone, Date.parse(expiresAt) - 1);
}

/**
 * Fits the rewards that a card had to those that it has now: what was removed since is added again, and what was added
 * is removed.
 */
export function restoreRewards(
  rows: RewardRow[],
  current: readonly { id: number; name: string; stampsRequired: number }[],
): RewardRow[] {
  const ids = new Set(current.map(({ id }) => String(id)));
  const formerIds = new Set(rows.map(({ id }) => id));
  return [
    ...rows.map((row) => (ids.has(row.id) ? row : { ...row, id: '' })),
    ...current
      .filter(({ id }) => !formerIds.has(String(id)))
      .map(({ id, name, stampsRequired }) => ({
        ...NEW_ROW,
        id: String(id),
        name,
        stamps: String(stampsRequired),
        isRemoved: true,
      })),
  ];
}
