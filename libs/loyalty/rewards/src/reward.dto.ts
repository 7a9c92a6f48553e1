import { BooleanField, Field, IntegerField, TextField } from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import { AsOfPageQuery } from '#http/as-of.js';
import { UpdatedSinceField } from '#http/page.js';
import {
  BooleanProperty,
  IntegerProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import type { NewReward, Reward } from './reward.js';
import type { RewardAttributes } from './reward.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  card_id: 'The card, which is a template.',
  name: 'The name.',
  stamps_required: 'The number of stamps it takes.',
  description: 'A text about it.',
  position: 'The place in the list of the card’s rewards.',
  active: 'Whether it can be redeemed.',
};

const DESCRIPTION = { max: 2000 };

@Dto('RewardInput', {
  wrapper: 'reward',
  bare: true,
  example: { card_id: 1, name: 'Free coffee', stamps_required: 5 },
})
export class CreateRewardDto {
  @IntegerField({ min: 1, description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextField({ description: DESCRIPTIONS.name }) declare readonly name: string;
  @IntegerField({ min: 1, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required: number;
  @TextField({ ...DESCRIPTION, optional: true, description: DESCRIPTIONS.description })
  declare readonly description: string | null;
  /** Null: after the card's last. */
  @IntegerField({ min: 0, optional: true, description: DESCRIPTIONS.position })
  declare readonly position: number | null;
  @BooleanField({ default: true, description: DESCRIPTIONS.active })
  declare readonly active: boolean;
}

@Dto('RewardChanges', {
  wrapper: 'reward',
  bare: CreateRewardDto,
  example: { description: 'Any size' },
})
export class UpdateRewardDto {
  @TextField({ omittable: true, description: DESCRIPTIONS.name }) declare readonly name?: string;
  @IntegerField({ min: 1, omittable: true, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required?: number;
  @TextField({ ...DESCRIPTION, clearable: true, description: DESCRIPTIONS.description })
  declare readonly description?: string | null;
  @IntegerField({ min: 0, omittable: true, description: DESCRIPTIONS.position })
  declare readonly position?: number;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.active })
  declare readonly active?: boolean;
}

@Dto('RewardListQuery')
export class RewardListQuery extends AsOfPageQuery {
  @IntegerField({ min: 1, optional: true, description: 'Only those of this card.' })
  declare readonly card_id: number | null;

  @Field(
    {
      schema: { type: 'string', nullable: false, default: undefined },
      convert: (value) => !['false', '0'].includes(String(value)),
    },
    {
      optional: true,
      description: 'false or 0: only inactive; any other value: only active; blank: both',
    },
  )
  declare readonly active: boolean | null;

  @UpdatedSinceField() declare readonly updated_since: Date | null;
}

@Dto('Reward')
export class RewardJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @IntegerProperty({ description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextProperty({ example: 'Free coffee', description: DESCRIPTIONS.name })
  declare readonly name: string;
  @TextProperty({ nullable: true, example: 'Any size', description: DESCRIPTIONS.description })
  declare readonly description: string | null;
  @IntegerProperty({ example: 5, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required: number;
  @IntegerProperty({ description: DESCRIPTIONS.position }) declare readonly position: number;
  @BooleanProperty({ description: DESCRIPTIONS.active }) declare readonly active: boolean;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
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

export function toRewardAttributes(input: CreateRewardDto): NewReward {
  const { name, stamps_required, description, position, active } = input;
  return { name, stampsRequired: stamps_required, description, position, active };
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
