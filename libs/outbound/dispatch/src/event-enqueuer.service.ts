import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { toPublicEventId } from '#kernel/public-id.js';
import {
  createMoveCheckpointSql,
  OvertakenError,
  toMoveArguments,
} from '#event-store/port/checkpoint.js';
import type { Position, StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { isAfter, parsePosition } from '#event-store/port/position.js';
import {
  EventBodies,
  getEventCustomerId,
  type Envelope,
} from '#public-events/event-bodies.service.js';
import {
  getEventLocationId,
  matchesSubject,
  type EventSubject,
} from '#public-events/event-subject.js';
import { EventSubjects } from '#public-events/event-subjects.service.js';
import type { PayloadFormat, PublicEventType } from '#public-events/public-events.js';
import { assertKnownTypes, findPublicType } from '#public-events/public-events.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { FAN_OUT_CHECKPOINT, armQueues } from '#subscriptions/delivery-requests.service.js';
import { isSubscribedTo } from '#subscriptions/webhook-subscription.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { Tier } from './delivery-queue.js';
import { LEASE_END } from './queue-leases.service.js';

/** The bodies of this many events are rendered before they are enqueued. */
const MAX_RENDERED_AHEAD = 8;
const MAX_UNHEARD = 10_000;
/** Of stores, and in the characters of what is compared. */
const MAX_CACHED_LISTENERS = { stores: 1_000, length: 4_096 };

type Listener = {
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
type PublicEvent = {
  eventId: string;
  customerId: number;
  type: PublicEventType;
  stored: StoredEvent;
  envelope?: Envelope;
};

/** @property text as the database renders them, to compare them */
type StoreListeners = { text: string; listeners: Listener[] };

/** `event` is an index into the events of the batch. */
type EnqueuedDelivery = { subscriptionId: number; event: number; payloadFormat: PayloadFormat };

type ClaimedQueue = { subscriptionId: number; tier: Tier };

/**
 * The queues in which something was enqueued.
 * @property claimed those that belong to the dispatcher that asked for them
 */
export type EnqueuedQueues = { claimed: ClaimedQueue[]; others: number[] };

/** `subscription_id` is null when nothing was claimed. No row at all: the checkpoint had moved. */
type EnqueueRow = { subscription_id: number; tier: Tier } | { subscription_id: null };

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

const FIND_LISTENERS = { name: 'webhook_listeners', text: renderListeners('$1') };

/**
 * One statement is one transaction. Everything depends on `moved`: a process that loses the race waits there for the
 * winner's commit, and then writes nothing. Ids are drawn after the checkpoint was read and before its move is committed,
 * each kind in the order of the log, so they rise in that order from batch to batch, whichever process leads. First
 * attempts and the feed follow it. Those of deliveries are drawn once their queues are locked: a replay may enqueue into
 * one at the same time, and its owner, who reads on from the last id that it knows, would pass over a lower one that comes
 * later. It also writes nothing when the listeners of the store of $18 are not those of $19 any more: a subscription that
 * was created before an event was recorded gets it.
 */
const ENQUEUE = {
  name: 'webhook_enqueue',
  text: `
    with moved as (
      ${createMoveCheckpointSql(`$18::bigint[] is null or $19 = (${renderListeners('$18')})`)}
    ), new_events as materialized (
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
      returning q.subscription_id, q.tier, q.dispatcher_id = $16 as mine
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
    select q.subscription_id, q.tier from moved left join queues q on q.mine`,
};

/**
 * Enqueues a delivery of each public event for each subscription that listens to it, and moves the checkpoint, in one
 * statement. What can be prepared is in that statement too: the bodies of a few events, and the leases of their queues.
 */
@Injectable()
export class EventEnqueuer {
  /** Stores whose last event had no listener. */
  private readonly unheard = new LRUCache<number, true>({ max: MAX_UNHEARD });
  /** The listeners of stores as they were last read. Whether they still are is asked where they are used. */
  private readonly listenerCache = new LRUCache<number, StoreListeners>({
    max: MAX_CACHED_LISTENERS.stores,
  });

  constructor(
    private readonly pool: Pool,
    private readonly bodies: EventBodies,
    private readonly subjects: EventSubjects,
    private readonly metrics: DeliveryMetrics,
    private readonly types: EventTypes,
  ) {}

  /**
   * @param dispatcherId the dispatcher that claims unleased queues; null: none
   * @throws OvertakenError when another process has moved the checkpoint, or what was cached is out of date
   */
  async enqueue(
    from: Position,
    stored: StoredEvent[],
    to: Position,
    dispatcherId: number | null,
  ): Promise<EnqueuedQueues> {
    const startedAt = performance.now();
    const events = this.getPublicEvents(stored);
    // The slower of the two is asked for first.
    const [envelopes, { listeners, compared }] = await Promise.all([
      this.renderAhead(events),
      this.findListeners(events),
    ]);
    const subjects = await this.subjects.find(
      stored,
      [...listeners.values()].flat().map(({ card_ids }) => ({ cardIds: card_ids })),
    );
    const deliveries = createDeliveries(events, listeners, subjects);
    for (const { event: index } of deliveries) {
      const event = events[index];
      const envelope = event && envelopes.get(event.eventId);
      if (envelope) event.envelope = envelope;
    }
    const moved = toMoveArguments(FAN_OUT_CHECKPOINT, from, to);
    const values = [
      ...toEnqueueArguments(moved, events, deliveries, dispatcherId),
      compared && [compared.accountId],
      compared?.text ?? null,
    ];
    const { rows } = await this.metrics.timeStatement(
      'enqueue',
      () => withPartitions(this.pool, () => this.pool.query<EnqueueRow>({ ...ENQUEUE, values })),
      () => deliveries.length,
    );
    if (rows.length === 0) {
      if (compared) this.listenerCache.delete(compared.accountId);
      throw new OvertakenError();
    }
    for (const { eventId, stored: event, envelope } of events) {
      this.metrics.observeEnqueued(event.meta.recordedAt);
      // What is already here need not be read again.
      if (envelope) this.bodies.rememberStored(eventId, envelope.text, startedAt);
      else this.bodies.remember(eventId, event);
    }
    const claimed = rows.flatMap(toClaimedQueue);
    const others = new Set(deliveries.map(({ subscriptionId }) => subscriptionId));
    for (const { subscriptionId } of claimed) others.delete(subscriptionId);
    return { claimed, others: [...others] };
  }

  /** What is published of the events. */
  private getPublicEvents(events: StoredEvent[]): PublicEvent[] {
    assertKnownTypes(this.types, events);
    return events.flatMap((stored) => {
      const type = findPublicType(this.types, stored.type);
      if (!type) return [];
      const customerId = getEventCustomerId(stored);
      return { eventId: toPublicEventId(stored.id), customerId, type, stored };
    });
  }

  /**
   * Somebody may be waiting for a single event. The bodies of many are rendered later, because a flood in one store would
   * otherwise delay enqueuing for all others.
   */
  private async renderAhead(events: PublicEvent[]): Promise<Map<string, Envelope>> {
    if (events.length > MAX_RENDERED_AHEAD) return new Map();
    const likely = events.filter(({ stored }) => !this.unheard.has(stored.meta.accountId));
    if (likely.length === 0) return new Map();
    return this.bodies.renderAhead(likely.map(({ stored }) => stored));
  }

  /**
   * Reads listeners after the events, so that it finds every subscription that was created before one of them was recorded.
   * Those of one store, as of an event that comes alone, may be older.
   * @returns also what is to be compared then when they are used
   */
  private async findListeners(events: PublicEvent[]): Promise<{
    listeners: Map<number, Listener[]>;
    compared: { accountId: number; text: string } | null;
  }> {
    const accountIds = [...new Set(events.map(({ stored }) => stored.meta.accountId))];
    const [accountId] = accountIds;
    if (accountId === undefined) return { listeners: new Map(), compared: null };
    const isOne = accountIds.length === 1;
    const cached = isOne && this.listenerCache.get(accountId);
    if (cached) {
      const listeners = new Map([[accountId, cached.listeners]]);
      return { listeners, compared: { accountId, text: cached.text } };
    }
    const { rows } = await this.pool.query<{ text: string }>({
      ...FIND_LISTENERS,
      values: [accountIds],
    });
    const text = rows[0]?.text ?? '[]';
    const listeners = new Map<number, Listener[]>(accountIds.map((id) => [id, []]));
    for (const listener of JSON.parse(text) as Listener[])
      listeners.get(listener.account_id)?.push(listener);
    for (const [id, { length }] of listeners) {
      if (length > 0) this.unheard.delete(id);
      else this.unheard.set(id, true);
    }
    if (isOne && text.length <= MAX_CACHED_LISTENERS.length)
      this.listenerCache.set(accountId, { text, listeners: listeners.get(accountId) ?? [] });
    return { listeners, compared: null };
  }
}

function createDeliveries(
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

/** @param moved the values of $1 to $4 */
function toEnqueueArguments(
  moved: unknown[],
  events: PublicEvent[],
  deliveries: EnqueuedDelivery[],
  dispatcherId: number | null,
): unknown[] {
  return [
    ...moved,
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

function toClaimedQueue(row: EnqueueRow): ClaimedQueue[] {
  return row.subscription_id === null
    ? []
    : [{ subscriptionId: row.subscription_id, tier: row.tier }];
}
