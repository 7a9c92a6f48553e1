import { BooleanField, Field, IntegerField, TextField } from '#http/fields.js';
import { Dto } from '#http/fields.pipe.js';
import { AsOfPageQuery } from '#http/as-of.js';
import type { Checked } from '#http/readers.js';
import {
  BooleanProperty,
  IntegerProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import type { Reward } from './reward.js';
import type { RewardAttributes } from './reward.events.js';

const DESCRIPTION = { max: 2000 };

@Dto('RewardInput', {
  wrapper: 'reward',
  bare: true,
  example: { card_id: 1, name: 'Free coffee', stamps_required: 5 },
})
export class CreateRewardDto {
  @IntegerField({ min: 1 }) declare readonly card_id: number;
  @TextField() declare readonly name: string;
  @IntegerField({ min: 1 }) declare readonly stamps_required: number;
  @TextField({ ...DESCRIPTION, optional: true }) declare readonly description: string | null;
  /** Null: after the card's last. */
  @IntegerField({ min: 0, optional: true }) declare readonly position: number | null;
  @BooleanField({ default: true }) declare readonly active: boolean;
}

@Dto('RewardChanges', {
  wrapper: 'reward',
  bare: CreateRewardDto,
  example: { description: 'Any size' },
})
export class UpdateRewardDto {
  @TextField({ omittable: true }) declare readonly name?: string;
  @IntegerField({ min: 1, omittable: true }) declare readonly stamps_required?: number;
  @TextField({ ...DESCRIPTION, clearable: true }) declare readonly description?: string | null;
  @IntegerField({ min: 0, omittable: true }) declare readonly position?: number;
  @BooleanField({ omittable: true }) declare readonly active?: boolean;
}

@Dto('RewardListQuery')
export class RewardListQuery extends AsOfPageQuery {
  @IntegerField({ min: 1, optional: true }) declare readonly card_id: number | null;

  @Field(
    readActive,
    { type: 'string', nullable: false, default: undefined },
    {
      optional: true,
      description: 'false or 0: only inactive; any other value: only active; blank: both',
    },
  )
  declare readonly active: boolean | null;
}

@Dto('Reward')
export class RewardJson {
  @IntegerProperty() declare readonly id: number;
  @IntegerProperty() declare readonly account_id: number;
  @IntegerProperty() declare readonly card_id: number;
  @TextProperty({ example: 'Free coffee' }) declare readonly name: string;
  @TextProperty({ nullable: true, example: 'Any size' }) declare readonly description:
    | string
    | null;
  @IntegerProperty({ example: 5 }) declare readonly stamps_required: number;
  @IntegerProperty() declare readonly position: number;
  @BooleanProperty() declare readonly active: boolean;
  @TimestampProperty() declare readonly created_at: string;
  @TimestampProperty() declare readonly updated_at: string;
}

export function toRewardJson(reward: Reward): RewardJson {
  return {
    id: reward.id,
    account_id: reward.accountId,
    card_id: reward.cardId,
    name: reward.name,
    description: reward.description,
    stamps_required: reward.stampsRequired,
    position: reward.position,
    active: reward.active,
    created_at: reward.createdAt,
    updated_at: reward.updatedAt,
  };
}

/** Converts the fields that the request contains, and no others. */
export function toRewardChanges(input: UpdateRewardDto): Partial<RewardAttributes> {
  const { name, stamps_required, description, position, active } = input;
  return {
    ...(name !== undefined && { name }),
    ...(stamps_required !== undefined && { stampsRequired: stamps_required }),
    ...(description !== undefined && { description }),
    ...(position !== undefined && { position }),
    ...(active !== undefined && { active }),
  };
}

function readActive(value: unknown): Checked<boolean> {
  return { value: !['false', '0'].includes(String(value)) };
}
