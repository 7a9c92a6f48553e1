import { encodeByteaArray } from '#database/bytea-array.js';
import { MOVE_CHECKPOINT } from '#event-store/port/checkpoint.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import type { PayloadFormat, PublicEventType } from '#public-events/public-event.js';
import { armLanes } from '#subscriptions/lane-arming.js';
import type { Pace } from './delivery-lane.js';
import { LEASED_UNTIL, VIEW_COLUMNS, type ViewRow } from './lane-view.js';

/** @property body sealed; undefined when it is rendered later */
export type PlannedEvent = {
  eventId: string;
  customerId: number;
  type: PublicEventType;
  stored: StoredEvent;
  body?: Buffer;
};

/** `event` is an index into the events of the batch. */
export type PlannedDelivery = {
  subscriptionId: number;
  event: number;
  payloadFormat: PayloadFormat;
};

export type Planned = { events: PlannedEvent[]; deliveries: PlannedDelivery[] };

/**
 * A delivery whose lane was claimed with it.
 * @property event as in `PlannedDelivery`
 * @property crowded something else was pending in the lane before
 */
export type ClaimedDelivery = ViewRow & {
  id: number;
  event: number;
  seq: number;
  at: Date;
  payload_format: PayloadFormat;
  pace: Pace;
  crowded: true | null;
};

/** What the statement answers with when nothing was claimed; no row at all: the checkpoint had moved. */
export type PlanRow = ClaimedDelivery | { id: null };

/**
 * One statement is one transaction. Everything depends on `moved`: a process that loses the race waits there for the
 * winner's commit, and then writes nothing. Ids are drawn after the checkpoint was read and before its move is committed,
 * each kind in the order of the log, so they rise in that order from batch to batch, whichever process leads. First
 * attempts and the feed follow it. Those of deliveries are drawn once their lanes are locked: a replay may plan into one at
 * the same time, and its owner, who reads on from the last id that it knows, would pass over a lower one that comes later.
 */
export const PLAN = {
  name: 'webhook_plan',
  text: `
    with moved as (
      ${MOVE_CHECKPOINT}
    ), planned as materialized (
      select webhook_next_id() as seq, x.*
      from unnest($5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::timestamptz[],
                  $12::bytea[])
        with ordinality as x (event_id, account_id, customer_id, type, stream, revision, recorded_at, body, nth)
    ), events as (
      insert into webhook_events
        (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
      select seq, event_id, account_id, customer_id, type, stream, revision, recorded_at from planned
      where exists (select from moved)
    ), bodies as (
      insert into webhook_bodies (seq, body)
      select seq, body from planned where body is not null and exists (select from moved)
    ), lanes as (
      ${armLanes(
        `select distinct subscription_id from unnest($13::bigint[]) as x (subscription_id)
         where exists (select from moved) order by subscription_id`,
        { owner: '$16::uuid', until: LEASED_UNTIL },
      )}
      returning l.subscription_id, l.enqueued, l.tier, l.dispatcher_id = $16 as mine
    ), wanted as materialized (
      select webhook_next_id() as id, clock_timestamp() as at, x.*
      from unnest($13::bigint[], $14::int[], $15::text[]) as x (subscription_id, event, payload_format)
      where (select count(*) from lanes) > 0
    ), deliveries as (
      insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream, type,
        payload_format, next_attempt_at, created_at)
      select w.id, w.subscription_id, p.seq, p.event_id, p.account_id, p.customer_id, p.stream, p.type,
        w.payload_format, w.at, w.at
      from wanted w join planned p on p.nth = w.event + 1
      where exists (select from moved)
    )
    select c.* from moved
    left join (
      select w.id, w.event, w.at, w.payload_format, p.seq, l.tier as pace, ${VIEW_COLUMNS},
        (select true from webhook_pending x where x.subscription_id = l.subscription_id limit 1) as crowded
      from lanes l
      join wanted w on w.subscription_id = l.subscription_id
      join planned p on p.nth = w.event + 1
      left join webhook_subscriptions s on s.id = l.subscription_id
      where l.mine
    ) c on true
    order by c.id`,
};

/**
 * @param moved the values of $1 to $4
 * @param claimant who claims lanes that have no owner; null: nobody
 */
export function planArguments(
  moved: unknown[],
  { events, deliveries }: Planned,
  claimant: string | null,
): unknown[] {
  const each = <T>(value: (event: PlannedEvent) => T) => events.map(value);
  return [
    ...moved,
    each(({ eventId }) => eventId),
    each(({ stored }) => stored.meta.accountId),
    each(({ customerId }) => customerId),
    each(({ type }) => type),
    each(({ stored }) => stored.stream),
    each(({ stored }) => stored.revision),
    each(({ stored }) => stored.meta.recordedAt),
    encodeByteaArray(each(({ body }) => body ?? null)),
    deliveries.map(({ subscriptionId }) => subscriptionId),
    deliveries.map(({ event }) => event),
    deliveries.map(({ payloadFormat }) => payloadFormat),
    claimant,
  ];
}
