import { collectIssues, InvalidFieldsError } from '#platform/kernel/errors.js';
import { readBody, readFields } from '#platform/http/dtos.js';
import { CreateCardDto, toCardAttributes } from '#loyalty/cards/card.dto.js';
import { AuxiliaryFieldDto, isBlankField } from '#loyalty/cards/card-fields.dto.js';
import type { CardAttributes } from '#loyalty/cards/card.events.js';
import { CreateRewardDto } from '#loyalty/rewards/reward.dto.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';
import {
  isEmptyRow,
  toLastDay,
  type DesignFields,
  type DesignForm,
  type RewardRow,
} from './design-form.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** The names in the form of the fields of a reward that have another one there. */
const REWARD_FIELDS: Readonly<Record<string, string>> = { stamps_required: 'stamps' };

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
 * @throws InvalidFieldsError with the errors of all fields; those of lists are named `reward_0_name` and `aux_label_1`
 */
export function parseDesign(
  { fields, rewards }: DesignForm,
  { timeZone, previous }: { timeZone: string; previous: { expiresAt: string | null } | null },
): ParsedDesign {
  const errors: FieldIssues = {};
  const auxiliary = [
    { label: fields.aux_label_1, value: fields.aux_value_1 },
    { label: fields.aux_label_2, value: fields.aux_value_2 },
  ].flatMap((input, i) => {
    if (isBlankField(input)) return [];
    const read = () => readFields(AuxiliaryFieldDto, input);
    return collectIssues(errors, read, (field) => `aux_${field}_${i + 1}`) ?? [];
  });
  const attributes = collectIssues(errors, () => parseAttributes(fields, auxiliary, timeZone));
  const inputs = rewards.flatMap((row, at) => {
    if (row.isRemoved || isEmptyRow(row)) return [];
    const rename = (field: string) => `reward_${at}_${REWARD_FIELDS[field] ?? field}`;
    return collectIssues(errors, () => parseReward(row, at), rename) ?? [];
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

function parseAttributes(
  fields: DesignFields,
  auxiliary: AuxiliaryFieldDto[],
  timeZone: string,
): CardAttributes {
  const { strip_color_same: hasCardColor, expires_on: expiresOn, ...values } = fields;
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
  const { initialStamps, stampsRequired: required } = attributes;
  if (initialStamps >= required)
    throw new InvalidFieldsError({
      initial_stamps: [ISSUES.initial_stamps_too_many({ required })],
    });
  return attributes;
}

function parseReward(row: RewardRow, at: number): RewardInput {
  const reward = { card_id: 1, name: row.name, stamps_required: row.stamps };
  const parsed = readBody(CreateRewardDto, { reward: { ...reward, description: row.description } });
  const { name, stamps_required: stampsRequired, description } = parsed;
  return { id: parsePositiveInteger(row.id), row: at, name, stampsRequired, description };
}
