import { Field, IntegerField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { AsOfPageQuery } from '#platform/http/as-of.js';
import { UpdatedSinceField } from '#platform/http/page.js';
import {
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import type { NewReward } from './reward.js';
import type { RewardAttributes } from './reward.events.js';

const CARD = { card_id: field.integer({ min: 1, description: 'The card, which is a template.' }) };

const FIELDS = {
  name: field.text({ description: 'The name.', response: { example: 'Free coffee' } }),
  stamps_required: field.integer({
    min: 1,
    description: 'The number of stamps it takes.',
    response: { example: 5 },
  }),
  description: field.text({
    max: 2000,
    optional: true,
    description: 'A text about it.',
    response: { example: 'Any size' },
  }),
  position: field.integer({
    min: 0,
    description: 'The place in the list of the card’s rewards.',
    // Null: after the card's last.
    create: { optional: true },
  }),
  active: field.boolean({ default: true, description: 'Whether it can be redeemed.' }),
} satisfies FieldsOf<RewardAttributes, NewReward>;

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  ...CARD,
  ...pick(FIELDS, 'name', 'description', 'stamps_required', 'position', 'active'),
  ...TIMES,
} satisfies Showing<typeof FIELDS>;

@Dto('RewardInput', {
  wrapper: 'reward',
  bare: true,
  example: { card_id: 1, name: 'Free coffee', stamps_required: 5 },
})
export class CreateRewardDto extends derive.input({ ...CARD, ...FIELDS }) {}

@Dto('RewardChanges', {
  wrapper: 'reward',
  bare: CreateRewardDto,
  example: { description: 'Any size' },
})
export class UpdateRewardDto extends derive.changes(FIELDS) {}

@Dto('Reward')
export class RewardJson extends derive.response(RESPONSE) {}

export const toRewardAttributes = derive.toAttributes({ ...CARD, ...FIELDS });
export const toRewardJson = derive.toJson(RESPONSE);

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
