import { z } from 'zod';
import {
  boolean,
  clearable,
  integer,
  oneOf,
  optional,
  orDefault,
  text,
  timestamp,
} from '#http/fields.js';
import { pageQuery } from '#http/page.js';
import { targetUrlFault, type TargetRules } from '#sending/target-address.js';
import {
  EVERY_EVENT,
  onlyEvent,
  type SubscriptionAttributes,
  type SubscriptionChanges,
  type WebhookSubscription,
} from './webhook-subscription.js';
import { PUBLIC_EVENTS } from '#public-events/public-event.js';

const SUBSCRIBABLE = [...PUBLIC_EVENTS, EVERY_EVENT] as const;
const FORMATS = ['envelope', 'flat'] as const;

const events = z
  .unknown()
  .transform((value, context): string[] => {
    const fault = eventsFault(value);
    if (fault === undefined) return [...new Set(value as string[])];
    context.addIssue({ code: 'custom', message: fault });
    return z.NEVER;
  })
  .meta({
    type: 'array',
    minItems: 1,
    items: { type: 'string', enum: SUBSCRIBABLE },
    description: 'Either this or event is required; * stands alone and means every event',
  });

function eventsFault(value: unknown): string | undefined {
  if (!Array.isArray(value)) return 'must be a list of event names';
  if (value.length === 0) return 'must name at least one event';
  const unknown = value.some((name) => !SUBSCRIBABLE.some((known) => known === name));
  if (unknown) return `must each be one of ${SUBSCRIBABLE.join(', ')}`;
  if (new Set(value).size > 1 && value.includes(EVERY_EVENT)) {
    return `must hold ${EVERY_EVENT} alone or named events only`;
  }
  return undefined;
}

function targetUrl(rules: TargetRules) {
  return text({ max: 2048, format: 'uri' })
    .superRefine((url, context) => {
      const fault = targetUrlFault(url, rules);
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault });
    })
    .describe('Publicly reachable https URL');
}

const sameEvents = {
  path: ['event'],
  error: 'must be the same as events',
  when: isSound('events', 'event'),
};

export function createWebhookSubscriptionDto(rules: TargetRules) {
  return z
    .object({
      events: optional(events),
      event: optional(oneOf(SUBSCRIBABLE)).describe('The same as events with one entry'),
      target_url: targetUrl(rules),
      description: optional(text()),
      payload_format: orDefault(oneOf(FORMATS), 'envelope'),
      enabled: orDefault(boolean(), true),
    })
    .refine((input) => input.events !== null || input.event !== null, {
      path: ['events'],
      error: 'is required (or event)',
      when: isSound('events', 'event'),
    })
    .refine(
      (input) => input.events === null || input.event === null || isOnly(input.event, input.events),
      sameEvents,
    )
    .refine((input) => input.payload_format !== 'flat' || isFlattable(input), {
      path: ['payload_format'],
      error: 'flat needs exactly one named event',
      when: isSound('events', 'event', 'payload_format'),
    })
    .meta({
      id: 'WebhookSubscriptionInput',
      example: {
        events: ['stamp.earned', 'reward.redeemed'],
        target_url: 'https://receiver.example/webhooks',
        description: 'Till',
      },
    });
}

/**
 * What is not named stays. A null `event` names none: it is how several events are answered.
 */
export function updateWebhookSubscriptionDto(rules: TargetRules) {
  return z
    .object({
      events: events.optional().describe('Replaces the list'),
      event: clearable(oneOf(SUBSCRIBABLE)).describe('The same as events with one entry'),
      target_url: targetUrl(rules).optional(),
      description: clearable(text()),
      payload_format: oneOf(FORMATS).optional(),
      enabled: boolean().optional().describe('false pauses, true resumes'),
    })
    .refine(
      ({ events: several, event }) => !several || !event || isOnly(event, several),
      sameEvents,
    )
    .meta({ id: 'WebhookSubscriptionChanges', example: { description: 'Till', enabled: true } });
}

type UpdateInput = z.infer<ReturnType<typeof updateWebhookSubscriptionDto>>;

export function subscriptionChanges(input: UpdateInput): SubscriptionChanges {
  const several = input.events ?? (input.event ? [input.event] : undefined);
  const { target_url, description, payload_format, enabled } = input;
  return {
    ...(several && { events: several }),
    ...(target_url !== undefined && { targetUrl: target_url }),
    ...(description !== undefined && { description }),
    ...(payload_format !== undefined && { payloadFormat: payload_format }),
    ...(enabled !== undefined && { enabled }),
  };
}

const WEEK_SECONDS = 7 * 24 * 60 * 60;

export const rotateSecretDto = z
  .object({
    grace_seconds: orDefault(integer({ min: 0, max: WEEK_SECONDS }), 0).describe(
      'For so long the old secret signs beside the new one',
    ),
  })
  .meta({ id: 'SecretRotation', example: { grace_seconds: 3600 } });

type CreateInput = z.infer<ReturnType<typeof createWebhookSubscriptionDto>>;

export function subscriptionAttributes(input: CreateInput): SubscriptionAttributes {
  return {
    events: eventsOf(input),
    targetUrl: input.target_url,
    description: input.description,
    payloadFormat: input.payload_format,
    enabled: input.enabled,
  };
}

/** Two ways of naming them on the wire; null where one was not used. */
type Chosen = { events: string[] | null; event: string | null };

function eventsOf({ events: several, event }: Chosen): string[] {
  return several ?? (event === null ? [] : [event]);
}

function isOnly(event: string, several: string[]): boolean {
  return several.length === 1 && several[0] === event;
}

function isFlattable(input: Chosen): boolean {
  const chosen = eventsOf(input);
  return chosen.length === 0 || onlyEvent(chosen) !== null;
}

/** Faults of other fields must not hide this one: all come together (contract section 1). */
function isSound(...fields: string[]) {
  return ({ issues }: { issues: { path?: PropertyKey[] | undefined }[] }) =>
    !issues.some(({ path }) => fields.includes(String(path?.[0])));
}

export const webhookSubscriptionListQuery = pageQuery.extend({
  event: optional(text()).meta({
    type: 'string',
    description: 'Only subscriptions that list this event, or *',
  }),
});

const nullableText = z.string().nullable();

export const webhookSubscriptionAnswer = z
  .object({
    id: z.int(),
    account_id: z.int(),
    events: z
      .array(z.string().meta({ enum: SUBSCRIBABLE }))
      .meta({ example: ['stamp.earned', 'reward.redeemed'] }),
    event: nullableText.describe('The event, where there is exactly one'),
    target_url: z.string().meta({ format: 'uri', example: 'https://receiver.example/webhooks' }),
    description: nullableText.meta({ example: 'Till' }),
    payload_format: z.enum(FORMATS),
    enabled: z.boolean(),
    disabled_at: timestamp.nullable().meta({ example: null }),
    disabled_reason: z
      .enum(['disabled_by_user', 'failing', 'blocked_address'])
      .nullable()
      .meta({ example: null }),
    last_delivery_at: timestamp.nullable(),
    last_delivery_status: z.int().nullable().meta({ example: 204 }),
    last_delivery_error: nullableText,
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'WebhookSubscription' });

export type WebhookSubscriptionJson = z.infer<typeof webhookSubscriptionAnswer>;

export const webhookSubscriptionSecretAnswer = webhookSubscriptionAnswer
  .extend({
    secret: z
      .string()
      .meta({ example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' })
      .describe('Signs the deliveries, as Standard Webhooks says'),
  })
  .meta({ id: 'WebhookSubscriptionWithSecret' });

export const webhookTestAnswer = z
  .object({
    delivered: z.boolean().describe('The URL answered 2xx'),
    status: z.int().nullable().meta({ example: 204 }).describe('The HTTP status that it answered'),
    event_id: z
      .string()
      .meta({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3' })
      .describe('The webhook-id of the test event'),
    error: nullableText.describe('Why delivery failed'),
  })
  .meta({ id: 'WebhookTest' });

export type WebhookTestJson = z.infer<typeof webhookTestAnswer>;

export type WebhookSubscriptionSecretJson = z.infer<typeof webhookSubscriptionSecretAnswer>;

export function webhookSubscriptionJson(
  subscription: WebhookSubscription,
): WebhookSubscriptionJson {
  return {
    id: subscription.id,
    account_id: subscription.accountId,
    events: subscription.events,
    event: onlyEvent(subscription.events),
    target_url: subscription.targetUrl,
    description: subscription.description,
    payload_format: subscription.payloadFormat,
    enabled: subscription.enabled,
    disabled_at: timeJson(subscription.disabledAt),
    disabled_reason: subscription.disabledReason,
    last_delivery_at: timeJson(subscription.lastDeliveryAt),
    last_delivery_status: subscription.lastDeliveryStatus,
    last_delivery_error: subscription.lastDeliveryError,
    created_at: subscription.createdAt.toISOString(),
    updated_at: subscription.updatedAt.toISOString(),
  };
}

export function webhookSubscriptionSecretJson(
  subscription: WebhookSubscription,
  secret: string,
): WebhookSubscriptionSecretJson {
  return { ...webhookSubscriptionJson(subscription), secret };
}

/** @param error in words; null when the URL answered 2xx */
export function webhookTestJson(
  eventId: string,
  status: number | null,
  error: string | null,
): WebhookTestJson {
  return { delivered: error === null, status, event_id: eventId, error };
}

function timeJson(time: Date | null): string | null {
  return time === null ? null : time.toISOString();
}
