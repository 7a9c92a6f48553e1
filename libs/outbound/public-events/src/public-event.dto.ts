import { z } from 'zod';
import { timestamp } from '#http/fields.js';
import type { PublishedWebhook } from '#http/endpoint.js';
import { customerCardAnswer, customerCardDetailAnswer } from '#stamping/customer-card.dto.js';
import { customerAnswer } from '#customers/customer.dto.js';
import { type PublicEventType } from './public-event.js';

/** What public-events.ts renders (contract section 10), for the OpenAPI document and for tests. */

const { first_name, last_name, email, phone, birthday, metadata } = customerAnswer.shape;
const { marketing_consent, sms_consent } = customerAnswer.shape;
const { card_name, stamps_count, stamps_remaining } = customerCardAnswer.shape;
const nullableRef = z.string().nullable();

const customerName = z
  .object({ id: z.int(), first_name, last_name, email, phone })
  .meta({ id: 'EventCustomer' });

const whose = { customer_id: z.int(), customer_card_id: z.int(), card_id: z.int(), card_name };

const customerCreated = customerAnswer
  .extend({ source: z.enum(['poster', 'app', 'import', 'api']) })
  .meta({ id: 'CustomerCreatedData' });

const customerCardCreated = customerCardDetailAnswer
  .extend({ customer: customerName })
  .meta({ id: 'CustomerCardCreatedData' });

const stamping = {
  ...whose,
  stamps_count,
  stamps_remaining,
  source: z.enum(['app_scan', 'api', 'pos', 'welcome_bonus', 'adjustment']),
  occurred_at: timestamp,
  location_id: z.int().nullable(),
  staff_ref: nullableRef,
  external_ref: nullableRef,
  customer: customerName,
  customer_card: customerCardAnswer,
};

const stampEarned = z
  .object({ ...stamping, stamps: z.int().min(1).describe('How many were added') })
  .meta({ id: 'StampEarnedData' });

const stampRemoved = z
  .object({ ...stamping, stamps: z.int().min(1).describe('How many were taken off') })
  .meta({ id: 'StampRemovedData' });

const rewardUnlocked = z
  .object({
    ...whose,
    stamps_count,
    reward: customerCardDetailAnswer.shape.available_rewards.element,
    customer: customerName,
  })
  .meta({ id: 'RewardUnlockedData' });

const rewardRedeemed = z
  .object({
    id: z.int().describe('The redemption'),
    reward_id: z.int(),
    reward_name: z.string().meta({ example: 'Free coffee' }),
    stamps_spent: z.int(),
    stamps_remaining: z.int().describe('The balance left on the card'),
    redeemed_at: timestamp,
    ...whose,
    customer: customerName,
  })
  .meta({ id: 'RewardRedeemedData' });

const test = z
  .object({
    subscription_id: z.int(),
    message: z.string().meta({ example: 'A test of this webhook subscription' }),
  })
  .meta({ id: 'WebhookTestData' });

const previousAttributes = z
  .object({
    first_name,
    last_name,
    email,
    phone,
    birthday,
    metadata,
    marketing_consent,
    sms_consent,
  })
  .partial()
  .meta({ example: { last_name: null } })
  .describe('The old values of what changed');

function announced(
  type: PublicEventType | 'webhook.test',
  summary: string,
  data: z.ZodObject,
  more: z.ZodRawShape = {},
): PublishedWebhook {
  const name = type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const envelope = z
    .object({
      id: z
        .string()
        .meta({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3' })
        .describe('The same at every attempt, so that duplicates can be dropped'),
      type: z.literal(type),
      timestamp: timestamp.describe('When the event was recorded'),
      account_id: z.int(),
      data,
      ...more,
    })
    .meta({ id: `${name}Event` });
  return { type, summary, envelope, data };
}

export const publicEvents = [
  announced('customer.created', 'A customer joined the programme', customerCreated),
  announced(
    'customer.updated',
    'A customer’s name, contact, birthday, metadata or consent changed',
    customerAnswer,
    { previous_attributes: previousAttributes },
  ),
  announced('customer_card.created', 'A customer was issued a card', customerCardCreated),
  announced('stamp.earned', 'Stamps were added', stampEarned),
  announced('stamp.removed', 'Stamps were taken off by an adjustment', stampRemoved),
  announced('reward.unlocked', 'A customer now has enough stamps for a reward', rewardUnlocked),
  announced(
    'reward.redeemed',
    'A customer redeemed a reward and its stamps were deducted',
    rewardRedeemed,
  ),
  announced('webhook.test', 'Sent only by the operation that tests a subscription', test),
];
