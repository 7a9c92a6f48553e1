import { createStepSql, type Step } from '#platform/event-store/port/subscription-position.js';
import type { Position, StoredEvent } from '#platform/event-store/port/event-store.js';
import { isAfter, parsePosition } from '#platform/event-store/port/position.js';
import {
  getEventLocationId,
  matchesSubject,
  type EventSubject,
} from '#outbound/public-events/event-subject.js';
import type { PayloadFormat, PublicEventType } from '#outbound/public-events/public-events.js';
import { armQueues } from '#outbound/subscriptions/webhook-delivery.js';
import { isSubscribedTo } from '#outbound/subscriptions/webhook-subscription.js';
import type { Tier } from './delivery-queue.js';
import { DELIVERY_COLUMNS, renderLoaded, type LoadedRow } from './load-statements.js';

/**
 * The bodies of this many events are rendered before they are enqueued, and their deliveries are sent from what the
 * statement returns.
 */
export const MAX_PREPARED = 8;

/** SQL: the end of a lease that begins now. */
export const LEASE_END = "now() + interval '30 seconds'";

export type Listener = {
  id: number;
  account_id: number;
  events: string[];
  payload_format: PayloadFormat;
  card_ids: number[] | null;
  location_ids: number[] | null;
  active_from: string;
  /** Null while it is still enabled. */
  active_until: string | null;
};

/** @property envelope undefined when it is rendered later */
export type PublicEvent = {
  eventId: string;
  customerId: number;
  type: PublicEventType;
  stored: StoredEvent;
  envelope?: { text: Buffer; sealed: Buffer };
};

/** `event` is an index into the events of the batch. */
type EnqueuedDelivery = { subscriptionId: number; event: number; payloadFormat: PayloadFormat };

/**
 * No row at all: the position had moved. `subscription_id` is null when nothing was claimed, `subscriptionId` when nothing
 * was read of the claimed queue.
 */
export type EnqueueRow = { subscription_id: number | null; tier: Tier } & (
  | LoadedRow
  | { subscriptionId: null }
);

/** Renders SQL for the listeners of stores, as one text. @param accountIds SQL of a `bigint[]` */
const renderListeners = (accountIds: string): string => `
  select coalesce(jsonb_agg(to_jsonb(l) order by l.id, l.active_from), '[]')::text as text from (
    select id, account_id, events, payload_format, card_ids, location_ids, active_from, null as active_until
    from webhook_subscriptions where account_id = any (${accountIds}) and enabled
    union all
    select s.id, s.account_id, s.events, s.payload_format, s.card_ids, s.location_ids, a.active_from, a.active_until
    from webhook_active_spans a join webhook_subscriptions s on s.id = a.subscription_id
    where s.account_id = any (${accountIds})
  ) l`;

export const FIND_LISTENERS = { name: 'webhook_listeners', text: renderListeners('$1') };

/**
 * One statement is one transaction. Everything depends on `moved`: a process that loses the race waits there for the
 * winner's commit, and then writes nothing. Ids are drawn after the position was read and before its move is committed,
 * each kind in the order of the log, so they rise in that order from batch to batch, whichever process leads. First
 * attempts and the feed follow it. Those of deliveries are drawn once their queues are locked: a replay may enqueue into
 * one at the same time, and its owner, who reads on from the last id that it knows, would pass over a lower one that comes
 * later. It also writes nothing when the listeners of the store of $18 are not those of $19 any more: a subscription that
 * was created before an event was recorded gets it.
 *
 * Of queues that it claims for a few events it returns what loading them would. Not of one in which something else is due,
 * nor of one into which somebody else enqueued since the statement began, which it does not see.
 */
const createEnqueueStatement = (kind: Step['kind']) => ({
  name: kind === 'log' ? 'webhook_enqueue' : 'webhook_enqueue_postponed',
  text: `
    with ${createStepSql(kind, `$18::bigint[] is null or $19 = (${renderListeners('$18')})`, 20)}, new_events as materialized (
      select webhook_next_id() as seq, x.*
      from unnest($5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::timestamptz[],
                  $12::bytea[], $17::bigint[])
        with ordinality
        as x (event_id, account_id, customer_id, type, stream, revision, recorded_at, body, location_id, nth)
    ), events as (
      insert into webhook_events
        (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at, location_id)
      select seq, event_id, account_id, customer_id, type, stream, revision, recorded_at, location_id
      from new_events
      where exists (select from moved)
    ), bodies as (
      insert into webhook_bodies (seq, body)
      select seq, body from new_events where body is not null and exists (select from moved)
    ), queues as (
      ${armQueues(
        `select distinct subscription_id from unnest($13::bigint[]) as x (subscription_id)
         where exists (select from moved) order by subscription_id`,
        { owner: '$16::int', until: LEASE_END },
      )}
      returning q.subscription_id, q.tier, q.enqueued_count, q.dispatcher_id = $16 as mine
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
      returning *
    ), requested as (
      select q.subscription_id, q.enqueued_count
      from queues q left join webhook_queues before on before.subscription_id = q.subscription_id
      where q.mine and (select count(*) from new_events) <= ${MAX_PREPARED}
        and q.enqueued_count = coalesce(before.enqueued_count, 0) + 1
        and not exists (select from webhook_pending p where p.subscription_id = q.subscription_id and p.tries = 0)
        and not exists (select from webhook_pending p
          where p.subscription_id = q.subscription_id and p.tries > 0 and p.next_attempt_at <= now())
    )
    select q.subscription_id, q.tier, l.*
    from moved left join queues q on q.mine
    left join (
      ${renderLoaded(
        `select ${DELIVERY_COLUMNS} from requested w join deliveries p on p.subscription_id = w.subscription_id`,
      )}
    ) l on l."subscriptionId" = q.subscription_id
    order by l.id`,
});
export const ENQUEUE = {
  log: createEnqueueStatement('log'),
  postponed: createEnqueueStatement('postponed'),
};

export function createDeliveries(
  events: PublicEvent[],
  listeners: Map<number, Listener[]>,
  subjects: Map<string, EventSubject>,
): EnqueuedDelivery[] {
  return events.flatMap((event, index) =>
    findListeners(event, listeners, subjects.get(event.stored.id)).map((listener) => ({
      subscriptionId: listener.id,
      event: index,
      payloadFormat: listener.payload_format,
    })),
  );
}

/** Each subscription once, although its spans may overlap where pauses and resumes were asked for at the same time. */
function findListeners(
  { type, stored }: PublicEvent,
  listeners: Map<number, Listener[]>,
  subject: EventSubject = { cardId: null, locationId: null },
): Listener[] {
  return (listeners.get(stored.meta.accountId) ?? [])
    .filter(
      (listener) =>
        isSubscribedTo(listener.events, type) &&
        matchesSubject(
          { cardIds: listener.card_ids, locationIds: listener.location_ids },
          subject,
        ) &&
        wasActive(listener, stored.position),
    )
    .filter(({ id }, i, all) => all[i - 1]?.id !== id);
}

function wasActive({ active_from: from, active_until: until }: Listener, at: Position): boolean {
  if (!isAfter(at, parsePosition(from))) return false;
  return until === null || !isAfter(at, parsePosition(until));
}

/** Builds the values of $5 to $17. */
export function toEnqueueArguments(
  events: PublicEvent[],
  deliveries: EnqueuedDelivery[],
  dispatcherId: number | null,
): unknown[] {
  return [
    events.map(({ eventId }) => eventId),
    events.map(({ stored }) => stored.meta.accountId),
    events.map(({ customerId }) => customerId),
    events.map(({ type }) => type),
    events.map(({ stored }) => stored.stream),
    events.map(({ stored }) => stored.revision),
    events.map(({ stored }) => stored.meta.recordedAt),
    events.map(({ envelope }) => envelope?.sealed ?? null),
    deliveries.map(({ subscriptionId }) => subscriptionId),
    deliveries.map(({ event }) => event),
    deliveries.map(({ payloadFormat }) => payloadFormat),
    dispatcherId,
    events.map(({ stored }) => getEventLocationId(stored)),
  ];
}
