import { MOVE_CHECKPOINT } from '#event-store/port/checkpoint.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import type { PayloadFormat, PublicEventType } from '#public-events/public-events.js';
import { armQueues } from '#subscriptions/queue-arming.js';
import type { Tier } from './delivery-queue.js';
import { LEASE_END, VIEW_COLUMNS, type ViewRow } from './queue-view.js';

/** @property body sealed; undefined when it is rendered later */
export type EnqueuedEvent = {
  eventId: string;
  customerId: number;
  type: PublicEventType;
  stored: StoredEvent;
  body?: Buffer;
};

/** `event` is an index into the events of the batch. */
export type EnqueuedDelivery = {
  subscriptionId: number;
  event: number;
  payloadFormat: PayloadFormat;
};

export type EnqueueBatch = { events: EnqueuedEvent[]; deliveries: EnqueuedDelivery[] };

/**
 * A delivery whose queue was claimed with it.
 * @property event as in `EnqueuedDelivery`
 * @property has_others something else was pending in the queue before
 */
export type ClaimedDelivery = ViewRow & {
  id: number;
  event: number;
  seq: number;
  at: Date;
  payload_format: PayloadFormat;
  tier: Tier;
  has_others: true | null;
};

/** A row of the result; `id` is null when nothing was claimed. No row at all: the checkpoint had moved. */
export type EnqueueRow = ClaimedDelivery | { id: null };

/**
 * One statement is one transaction. Everything depends on `moved`: a process that loses the race waits there for the
 * winner's commit, and then writes nothing. Ids are drawn after the checkpoint was read and before its move is committed,
 * each kind in the order of the log, so they rise in that order from batch to batch, whichever process leads. First
 * attempts and the feed follow it. Those of deliveries are drawn once their queues are locked: a replay may plan into one at
 * the same time, and its owner, who reads on from the last id that it knows, would pass over a lower one that comes later.
 */
export const ENQUEUE = {
  name: 'webhook_enqueue',
  text: `
    with moved as (
      ${MOVE_CHECKPOINT}
    ), new_events as materialized (
      select webhook_next_id() as seq, x.*
      from unnest($5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::timestamptz[],
                  $12::bytea[])
        with ordinality as x (event_id, account_id, customer_id, type, stream, revision, recorded_at, body, nth)
    ), events as (
      insert into webhook_events
        (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
      select seq, event_id, account_id, customer_id, type, stream, revision, recorded_at from new_events
      where exists (select from moved)
    ), bodies as (
      insert into webhook_bodies (seq, body)
      select seq, body from new_events where body is not null and exists (select from moved)
    ), queues as (
      ${armQueues(
        `select distinct subscription_id from unnest($13::bigint[]) as x (subscription_id)
         where exists (select from moved) order by subscription_id`,
        { owner: '$16::uuid', until: LEASE_END },
      )}
      returning l.subscription_id, l.enqueued, l.tier, l.dispatcher_id = $16 as mine
    ), new_deliveries as materialized (
      select webhook_next_id() as id, clock_timestamp() as at, x.*
      from unnest($13::bigint[], $14::int[], $15::text[]) as x (subscription_id, event, payload_format)
      where (select count(*) from queues) > 0
    ), deliveries as (
      insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream, type,
        payload_format, next_attempt_at, created_at)
      select w.id, w.subscription_id, p.seq, p.event_id, p.account_id, p.customer_id, p.stream, p.type,
        w.payload_format, w.at, w.at
      from new_deliveries w join new_events p on p.nth = w.event + 1
      where exists (select from moved)
    )
    select c.* from moved
    left join (
      select w.id, w.event, w.at, w.payload_format, p.seq, l.tier, ${VIEW_COLUMNS},
        (select true from webhook_pending x where x.subscription_id = l.subscription_id limit 1) as has_others
      from queues l
      join new_deliveries w on w.subscription_id = l.subscription_id
      join new_events p on p.nth = w.event + 1
      left join webhook_subscriptions s on s.id = l.subscription_id
      where l.mine
    ) c on true
    order by c.id`,
};

/**
 * @param moved the values of $1 to $4
 * @param dispatcherId the dispatcher that claims unleased queues; null: none
 */
export function toEnqueueArguments(
  moved: unknown[],
  { events, deliveries }: EnqueueBatch,
  dispatcherId: string | null,
): unknown[] {
  const toArray = <T>(value: (event: EnqueuedEvent) => T) => events.map(value);
  return [
    ...moved,
    toArray(({ eventId }) => eventId),
    toArray(({ stored }) => stored.meta.accountId),
    toArray(({ customerId }) => customerId),
    toArray(({ type }) => type),
    toArray(({ stored }) => stored.stream),
    toArray(({ stored }) => stored.revision),
    toArray(({ stored }) => stored.meta.recordedAt),
    toArray(({ body }) => body ?? null),
    deliveries.map(({ subscriptionId }) => subscriptionId),
    deliveries.map(({ event }) => event),
    deliveries.map(({ payloadFormat }) => payloadFormat),
    dispatcherId,
  ];
}
