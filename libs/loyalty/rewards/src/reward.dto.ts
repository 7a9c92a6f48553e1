import { z } from 'zod';
import { boolean, clearable, integer, optional, orDefault, text, timestamp } from '#http/fields.js';
import { pageQuery } from '#http/page.js';
import type { Reward } from './reward.js';
import type { RewardAttributes } from './reward.events.js';

const description = text({ max: 2000 });
const stampsRequired = integer({ min: 1 });
const position = integer({ min: 0 });

export const createRewardDto = z
  .object({
    card_id: integer({ min: 1 }),
    name: text(),
    stamps_required: stampsRequired,
    description: optional(description),
    /** Null: behind the card's last. */
    position: optional(position),
    active: orDefault(boolean(), true),
  })
  .meta({ id: 'RewardInput', example: { card_id: 1, name: 'Free coffee', stamps_required: 5 } });

export const updateRewardDto = z
  .object({
    name: text().optional(),
    stamps_required: stampsRequired.optional(),
    description: clearable(description),
    position: position.optional(),
    active: boolean().optional(),
  })
  .meta({ id: 'RewardChanges', example: { description: 'Any size' } });

export const rewardListQuery = pageQuery.extend({
  card_id: optional(integer({ min: 1 })),
  active: z
    .unknown()
    .optional()
    .transform((value): boolean | null => {
      if (value === undefined || value === null || String(value).trim() === '') return null;
      return !['false', '0'].includes(String(value));
    })
    .meta({
      type: 'string',
      description: 'false or 0: only inactive; any other value: only active; blank: both',
    }),
});

export const rewardAnswer = z
  .object({
    id: z.int(),
    account_id: z.int(),
    card_id: z.int(),
    name: z.string().meta({ example: 'Free coffee' }),
    description: z.string().nullable().meta({ example: 'Any size' }),
    stamps_required: z.int().meta({ example: 5 }),
    position: z.int(),
    active: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Reward' });

export type RewardJson = z.infer<typeof rewardAnswer>;

export function rewardJson(reward: Reward): RewardJson {
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

/** Only what was named in the request. */
export function rewardChanges(input: z.infer<typeof updateRewardDto>): Partial<RewardAttributes> {
  const { name, stamps_required, description, position, active } = input;
  return {
    ...(name !== undefined && { name }),
    ...(stamps_required !== undefined && { stampsRequired: stamps_required }),
    ...(description !== undefined && { description }),
    ...(position !== undefined && { position }),
    ...(active !== undefined && { active }),
  };
}
