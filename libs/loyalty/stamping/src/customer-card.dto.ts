import { z } from 'zod';
import {
  integer,
  oneOf,
  optional,
  orDefault,
  boolean,
  text,
  time,
  timestamp,
} from '#http/fields.js';
import {
  availableRewards,
  progressPercentage,
  statusOf,
  type CustomerCard,
  type Milestone,
  type Template,
} from './customer-card.js';
import type { ActionDetails, RewardRedeemed } from './customer-card.events.js';

const actionDetails = {
  skip_notifications: orDefault(boolean(), false),
  location_id: optional(integer({ min: 1 })),
  staff_ref: optional(text()),
  external_ref: optional(text()),
  occurred_at: optional(time()),
  note: optional(text({ max: 500 })),
  source: orDefault(oneOf(['api', 'pos']), 'api'),
};

export const enrolDto = z
  .object({ card_id: integer({ min: 1 }) })
  .meta({ id: 'CustomerCardInput', example: { card_id: 2 } });

export const stampDto = z
  .object({ stamps: integer({ min: 1, max: 100 }), ...actionDetails })
  .meta({ id: 'StampInput', example: { stamps: 5, external_ref: 'receipt-1001' } });

export const redeemDto = z
  .object({ reward_id: integer({ min: 1 }), ...actionDetails })
  .meta({ id: 'RedeemInput', example: { reward_id: 1 } });

const passUrl = (platform: string) =>
  z.string().meta({
    format: 'uri',
    example: `https://inkpad.example/passes/0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01/${platform}`,
  });

export const cardActionQuery = z.object({
  dry_run: orDefault(boolean(), false).describe('True: the same answer, and nothing is stored'),
});

const listShape = {
  id: z.int(),
  uuid: z.string().meta({ format: 'uuid', example: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01' }),
  card_id: z.int(),
  card_name: z.string().meta({ example: 'Coffee card' }),
  status: z.enum(['active', 'completed', 'expired']),
  stamps_count: z.int().meta({ example: 5 }),
  stamps_remaining: z.int().meta({ example: 5 }),
  progress_percentage: z.int().meta({ example: 50 }),
  pass_installed: z.boolean().meta({ example: false }),
  apple_wallet_url: passUrl('apple'),
  google_wallet_url: passUrl('google'),
  issued_at: timestamp,
  created_at: timestamp,
  updated_at: timestamp,
  code: z.string().meta({ example: 'K7QX2M9P' }).describe('What the barcode holds'),
};

const rewardShape = z.object({
  id: z.int(),
  name: z.string().meta({ example: 'Free coffee' }),
  description: z.string().nullable().meta({ example: 'Any size' }),
  stamps_required: z.int().meta({ example: 5 }),
});

export const customerCardAnswer = z.object(listShape).meta({ id: 'CustomerCard' });

export const customerCardDetailAnswer = z
  .object({
    ...listShape,
    customer_id: z.int(),
    account_id: z.int(),
    available_rewards: z.array(rewardShape),
  })
  .meta({ id: 'CustomerCardDetail' });

export const redemptionAnswer = z
  .object({
    success: z.literal(true),
    redemption: z.object({
      id: z.int(),
      reward_id: z.int(),
      reward_name: z.string().meta({ example: 'Free coffee' }),
      stamps_spent: z.int().meta({ example: 5 }),
      stamps_remaining: z.int().meta({ example: 0 }).describe('The balance left on the card'),
      redeemed_at: timestamp,
    }),
  })
  .meta({ id: 'Redemption' });

export type CustomerCardJson = z.infer<typeof customerCardAnswer>;
export type CustomerCardDetailJson = z.infer<typeof customerCardDetailAnswer>;
export type RedemptionJson = z.infer<typeof redemptionAnswer>;

/** What a customer card's answer depends on besides the card itself. */
export type RenderContext = { template: Template; now: Date; publicUrl: string };

export function customerCardJson(card: CustomerCard, showing: RenderContext): CustomerCardJson {
  const { template, now, publicUrl } = showing;
  return {
    id: card.id,
    uuid: card.uuid,
    card_id: card.cardId,
    card_name: template.name,
    status: statusOf(card.stampsCount, template, now),
    stamps_count: card.stampsCount,
    stamps_remaining: Math.max(0, template.stampsRequired - card.stampsCount),
    progress_percentage: progressPercentage(card.stampsCount, template),
    pass_installed: false,
    apple_wallet_url: `${publicUrl}/passes/${card.uuid}/apple`,
    google_wallet_url: `${publicUrl}/passes/${card.uuid}/google`,
    issued_at: card.issuedAt,
    created_at: card.issuedAt,
    updated_at: card.updatedAt,
    code: card.code,
  };
}

export function customerCardDetailJson(
  card: CustomerCard,
  showing: RenderContext,
): CustomerCardDetailJson {
  return {
    ...customerCardJson(card, showing),
    customer_id: card.customerId,
    account_id: card.accountId,
    available_rewards: availableRewards(card, showing.template).map(rewardJson),
  };
}

function rewardJson({ id, name, description, stampsRequired }: Milestone) {
  return { id, name, description, stamps_required: stampsRequired };
}

/** @param card as the redemption left it */
export function redemptionJson(
  card: CustomerCard,
  redeemed: RewardRedeemed & { meta: { occurredAt: string } },
): RedemptionJson {
  const { redemptionId, rewardId, rewardName, stampsSpent } = redeemed.data;
  return {
    success: true,
    redemption: {
      id: redemptionId,
      reward_id: rewardId,
      reward_name: rewardName,
      stamps_spent: stampsSpent,
      stamps_remaining: card.stampsCount,
      redeemed_at: redeemed.meta.occurredAt,
    },
  };
}

type ActionDetailsInput = Omit<z.infer<typeof stampDto>, 'stamps'>;

export function actionDetailsOf(
  input: ActionDetailsInput,
): ActionDetails & { source: 'api' | 'pos'; occurredAt: Date | undefined } {
  return {
    locationId: input.location_id,
    staffRef: input.staff_ref,
    externalRef: input.external_ref,
    silent: input.skip_notifications,
    personal: input.note === null ? null : { note: input.note },
    source: input.source,
    occurredAt: input.occurred_at ?? undefined,
  };
}
