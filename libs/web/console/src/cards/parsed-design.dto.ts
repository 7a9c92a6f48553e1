import { InvalidFieldsError } from '#kernel/errors.js';
import { collectIssues, readBody } from '#http/dtos.js';
import { CreateCardDto, toCardAttributes } from '#cards/card.dto.js';
import type { CardAttributes } from '#cards/card.events.js';
import { CreateRewardDto } from '#rewards/reward.dto.js';
import { parsePositiveInteger } from '#pages/page-query.js';
import {
  isEmptyRow,
  toLastDay,
  type DesignFields,
  type DesignForm,
  type RewardRow,
} from './design-form.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#kernel/issues.js';

/** A reward to create or update. @property id null: it is new @property row its place in the form */
export type RewardInput = {
  id: number | null;
  row: number;
  name: string;
  stampsRequired: number;
  description: string | null;
};

export type ParsedDesign = {
  attributes: CardAttributes;
  rewards: RewardInput[];
  removedIds: number[];
};

/**
 * Parses the form by the rules of the API.
 * @param previous the expiry of the card before: the form shows only its day, and keeps its time while that is the same
 * @throws InvalidFieldsError with the errors of all fields; those of rewards are named `reward_0_name`
 */
export function parseDesign(
  { fields, rewards }: DesignForm,
  { timeZone, previous }: { timeZone: string; previous: { expiresAt: string | null } | null },
): ParsedDesign {
  const errors: FieldIssues = {};
  const attributes = collectIssues(errors, () => parseAttributes(fields, timeZone));
  const inputs = rewards.flatMap((row, at) => {
    if (row.isRemoved || isEmptyRow(row)) return [];
    return collectIssues(errors, () => parseReward(row, at)) ?? [];
  });
  if (!attributes || Object.keys(errors).length > 0) throw new InvalidFieldsError(errors);
  const isSameDay = previous && toLastDay(previous.expiresAt, timeZone) === fields.expires_on;
  return {
    attributes: isSameDay ? { ...attributes, expiresAt: previous.expiresAt } : attributes,
    rewards: inputs,
    removedIds: rewards
      .filter((row) => row.isRemoved || isEmptyRow(row))
      .map(({ id }) => parsePositiveInteger(id))
      .filter((id) => id !== null),
  };
}

function parseAttributes(fields: DesignFields, timeZone: string): CardAttributes {
  const { strip_color_same: hasCardColor, expires_on: expiresOn, ...values } = fields;
  const auxiliary = [
    { label: fields.aux_label_1, value: fields.aux_value_1 },
    { label: fields.aux_label_2, value: fields.aux_value_2 },
  ];
  const body = {
    card: {
      ...values,
      strip_color: hasCardColor ? null : fields.strip_color,
      auxiliary_fields: auxiliary,
      // A page from before the field existed sends none.
      barcode_format: fields.barcode_format === '' ? null : fields.barcode_format,
      expires_at: expiresOn === '' ? null : expiresOn,
    },
  };
  const attributes = toCardAttributes(readBody(CreateCardDto, body, timeZone));
  if (attributes.initialStamps >= attributes.stampsRequired) {
    throw new InvalidFieldsError({ initial_stamps: [ISSUES.initial_stamps_fill_card] });
  }
  return attributes;
}

function parseReward(row: RewardRow, at: number): RewardInput {
  const reward = { card_id: 1, name: row.name, stamps_required: row.stamps };
  try {
    const parsed = readBody(CreateRewardDto, {
      reward: { ...reward, description: row.description },
    });
    const { name, stamps_required: stampsRequired, description } = parsed;
    return { id: parsePositiveInteger(row.id), row: at, name, stampsRequired, description };
  } catch (error) {
    if (!(error instanceof InvalidFieldsError)) throw error;
    const names = { name: 'name', stamps_required: 'stamps', description: 'description' };
    throw new InvalidFieldsError(
      Object.fromEntries(
        Object.entries(error.issues).map(([field, issues]) => [
          `reward_${at}_${names[field as keyof typeof names]}`,
          issues,
        ]),
      ),
    );
  }
}
