import { ArrayNotEmpty, IsArray, IsIn } from 'class-validator';
import { Field, OneOfField, TimeField } from '#platform/http/fields.js';
import { Dto, FieldsRule } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  IntegerProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { PUBLIC_EVENTS, type PublicEventType } from '#outbound/public-events/public-events.js';
import { ISSUES } from '#translations/issues.js';

const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const KINDS = ['scheduled', 'manual'] as const;
type Status = (typeof STATUSES)[number];

/** How many deliveries a page shows without a limit in the query. */
export const DELIVERIES_SHOWN = 100;

@Dto('WebhookDeliveryListQuery')
export class DeliveryListQuery extends PageQuery {
  @OneOfField(STATUSES, { optional: true, description: 'Only deliveries in this state.' })
  declare readonly status: Status | null;
  @OneOfField(PUBLIC_EVENTS, { optional: true, description: 'Only events of this type.' })
  declare readonly type: PublicEventType | null;
  @TimeField({ optional: true, description: 'Created at or after this time' })
  declare readonly from: Date | null;
  @TimeField({ optional: true, moment: 'next', description: 'Created before this time' })
  declare readonly to: Date | null;
}

export type DeliveryFilter = Omit<DeliveryListQuery, 'limit' | 'cursor'>;

const TYPES_ERROR = { context: ISSUES.replay_types_invalid({ types: PUBLIC_EVENTS.join(', ') }) };
const typesValidators = [
  IsArray(TYPES_ERROR),
  ArrayNotEmpty(TYPES_ERROR),
  IsIn(PUBLIC_EVENTS, { ...TYPES_ERROR, each: true }),
];

@Dto('WebhookReplay')
@FieldsRule<ReplayDto>(
  ['from', 'to', 'types'],
  'to',
  ({ from, to }) => to === null || from < to,
  ISSUES.end_before_start,
)
export class ReplayDto {
  @TimeField({
    example: '2026-03-01T00:00:00Z',
    description: 'Events recorded at or after this time',
  })
  declare readonly from: Date;

  @TimeField({
    optional: true,
    moment: 'next',
    description: 'Events recorded before this time; if omitted, until now',
  })
  declare readonly to: Date | null;

  @Field(
    {
      schema: { type: 'array', minItems: 1, items: { type: 'string', enum: PUBLIC_EVENTS } },
      validators: typesValidators,
      finish: (types: PublicEventType[]) => [...new Set(types)],
    },
    { optional: true, description: 'Only these types, of those that the subscription gets' },
  )
  declare readonly types: PublicEventType[] | null;
}

@Dto('WebhookReplayed')
export class ReplayJson {
  @IntegerProperty({ description: 'The number of events that will be sent' })
  declare readonly matched: number;
}

@Dto('WebhookDelivery')
export class DeliveryJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({
    example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
    description: 'The webhook-id, the same in every attempt',
  })
  declare readonly event_id: string;
  @OneOfProperty(PUBLIC_EVENTS, { description: 'The kind of event.' })
  declare readonly type: PublicEventType;
  @OneOfProperty(STATUSES, { description: 'The state.' }) declare readonly status: Status;
  @IntegerProperty({ description: 'The number of attempts so far.' })
  declare readonly attempts_count: number;
  @TimestampProperty({ nullable: true, description: 'Null unless pending' })
  declare readonly next_attempt_at: string | null;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({
    nullable: true,
    example: null,
    description: 'When the receiver accepted it; null until then.',
  })
  declare readonly delivered_at: string | null;
}

@Dto('WebhookAttempt')
class AttemptJson {
  @IntegerProperty({ description: 'The number of the attempt, from 1.' })
  declare readonly attempt: number;
  @OneOfProperty(KINDS, { description: 'Whether it was scheduled or requested.' })
  declare readonly kind: (typeof KINDS)[number];
  @TimestampProperty({ description: 'When it was created.' }) declare readonly at: string;
  @IntegerProperty({
    nullable: true,
    example: 503,
    description: 'The HTTP status of the response',
  })
  declare readonly status: number | null;
  @IntegerProperty({ example: 87, description: 'The duration of the attempt, in milliseconds.' })
  declare readonly duration_ms: number;
  @TextProperty({ nullable: true, description: 'Why it failed; null when it did not.' })
  declare readonly error: string | null;
  @TextProperty({ nullable: true, description: 'The first KiB of the response' })
  declare readonly response_excerpt: string | null;
}

@Dto('WebhookDeliveryDetail')
export class DeliveryDetailJson extends DeliveryJson {
  @ObjectsProperty(() => AttemptJson, { description: 'Every attempt so far, the first one first.' })
  declare readonly attempts: AttemptJson[];
}

/** One row of the view `webhook_deliveries`, as a query with these columns returns it. */
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

export function toDeliveryJson(row: DeliveryRow): DeliveryJson {
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

export function toDeliveryDetailJson(
  row: DeliveryRow,
  attempts: { row: AttemptRow; excerpt: string | null }[],
): DeliveryDetailJson {
  return {
    ...toDeliveryJson(row),
    attempts: attempts.map(({ row: attempt, excerpt }) => ({
      attempt: attempt.attempt,
      kind: attempt.kind,
      at: attempt.at.toISOString(),
      status: attempt.status,
      duration_ms: attempt.duration_ms,
      error: attempt.error,
      response_excerpt: excerpt,
    })),
  };
}
