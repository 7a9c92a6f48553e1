import { z } from 'zod';
import { oneOf, optional, time, timestamp } from '#http/fields.js';
import { pageQuery } from '#http/page.js';
import { PUBLIC_EVENTS, type PublicEventType } from '#public-events/public-event.js';

const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const eventId = z.string().meta({ example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3' });

/** How many deliveries one page shows where nothing is said. */
export const DELIVERIES_SHOWN = 100;

export const deliveryListQuery = pageQuery.extend({
  status: optional(oneOf(STATUSES)),
  type: optional(oneOf(PUBLIC_EVENTS)),
  from: optional(time()).describe('Made then or later'),
  to: optional(time()).describe('Made before'),
});

export type DeliveryFilter = Omit<z.infer<typeof deliveryListQuery>, 'limit' | 'cursor'>;

const types = z
  .unknown()
  .transform((value, context): PublicEventType[] => {
    const known = (name: unknown) => PUBLIC_EVENTS.some((event) => event === name);
    if (Array.isArray(value) && value.length > 0 && value.every(known)) {
      return [...new Set(value as PublicEventType[])];
    }
    context.addIssue({
      code: 'custom',
      message: `must be a list of ${PUBLIC_EVENTS.join(', ')}`,
    });
    return z.NEVER;
  })
  .meta({ type: 'array', minItems: 1, items: { type: 'string', enum: PUBLIC_EVENTS } });

export const replayDto = z
  .object({
    from: time()
      .meta({ type: 'string', format: 'date-time', example: '2026-03-01T00:00:00Z' })
      .describe('Events recorded then or later'),
    to: optional(time()).describe('and before; without it, until now'),
    types: optional(types).describe('Only these of what the subscription gets'),
  })
  .refine(({ from, to }) => to === null || from < to, {
    path: ['to'],
    error: 'must be after from',
    when: ({ issues }) => issues.length === 0,
  })
  .meta({ id: 'WebhookReplay' });

export const replayAnswer = z
  .object({ matched: z.int().describe('Events of that time that will be sent') })
  .meta({ id: 'WebhookReplayed' });

export type ReplayJson = z.infer<typeof replayAnswer>;

const nullableText = z.string().nullable();

const deliveryShape = {
  id: z.int(),
  event_id: eventId.describe('The webhook-id, the same at every attempt'),
  type: z.enum(PUBLIC_EVENTS),
  status: z.enum(STATUSES),
  attempts_count: z.int(),
  next_attempt_at: timestamp.nullable().describe('While it is pending'),
  created_at: timestamp,
  delivered_at: timestamp.nullable().meta({ example: null }),
};

export const deliveryAnswer = z.object(deliveryShape).meta({ id: 'WebhookDelivery' });

export const deliveryDetailAnswer = z
  .object({
    ...deliveryShape,
    attempts: z.array(
      z.object({
        attempt: z.int(),
        kind: z.enum(['scheduled', 'manual']),
        at: timestamp,
        status: z
          .int()
          .nullable()
          .meta({ example: 503 })
          .describe('The HTTP status that was answered'),
        duration_ms: z.int().meta({ example: 87 }),
        error: nullableText,
        response_excerpt: nullableText.describe('The first KiB of the answer'),
      }),
    ),
  })
  .meta({ id: 'WebhookDeliveryDetail' });

export type DeliveryJson = z.infer<typeof deliveryAnswer>;
export type DeliveryDetailJson = z.infer<typeof deliveryDetailAnswer>;

/** One record of the view `webhook_deliveries`, as a query with these columns returns it. */
export type DeliveryRow = {
  id: number;
  customer_id: number;
  event_id: string;
  type: PublicEventType;
  status: (typeof STATUSES)[number];
  attempts_count: number;
  next_attempt_at: Date | null;
  created_at: Date;
  delivered_at: Date | null;
};

export const DELIVERY_COLUMNS =
  'id, customer_id, event_id, type, status, attempts_count, next_attempt_at, created_at, delivered_at';

export type AttemptRow = {
  attempt: number;
  kind: 'scheduled' | 'manual';
  at: Date;
  status: number | null;
  duration_ms: number;
  error: string | null;
};

export function deliveryJson(row: DeliveryRow): DeliveryJson {
  return {
    id: row.id,
    event_id: row.event_id,
    type: row.type,
    status: row.status,
    attempts_count: row.attempts_count,
    next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
    delivered_at: row.delivered_at?.toISOString() ?? null,
  };
}

export function deliveryDetailJson(
  row: DeliveryRow,
  attempts: { row: AttemptRow; excerpt: string | null }[],
): DeliveryDetailJson {
  return {
    ...deliveryJson(row),
    attempts: attempts.map(({ row: made, excerpt }) => ({
      attempt: made.attempt,
      kind: made.kind,
      at: made.at.toISOString(),
      status: made.status,
      duration_ms: made.duration_ms,
      error: made.error,
      response_excerpt: excerpt,
    })),
  };
}
