import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { publicEventId } from '#kernel/public-id.js';
import { ROOT_CONTEXT, traced } from '#kernel/tracing.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import {
  checkpointOf,
  MOVE_CHECKPOINT,
  moveArguments,
  OvertakenError,
} from '#event-store/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/event-store.js';
import { EventTypes, UnknownEventTypeError } from '#event-store/event-types.js';
import { followLog } from '#event-store/follow-log.js';
import { isAfter, parsePosition } from '#event-store/position.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { NOBODY } from '#event-store/personal-keys.js';
import { EventBodies } from '#public-events/event-bodies.service.js';
import { publicTypeOf, refuseUnknown } from '#public-events/public-events.js';
import { DispatcherMaintenance } from './dispatcher-maintenance.service.js';
import { Replays } from './replays.service.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { PLANNED } from '#subscriptions/delivery-plans.service.js';
import { armLanes } from '#subscriptions/lane-arming.js';
import { wants } from '#subscriptions/webhook-subscription.js';
import { type PayloadFormat, type PublicEventType } from '#public-events/public-event.js';

const LEADERSHIP = { name: 'webhook fan-out', lock: 727_001 };
const BATCH = 500;
/** With no more deliveries than this in a batch, their bodies are rendered before they are asked for. */
const PREPARED = 8;

type Listener = {
  id: number;
  account_id: number;
  events: string[];
  payload_format: PayloadFormat;
  active_from: string;
  /** Null while it is still enabled. */
  active_until: string | null;
};

type PlannedEvent = { eventId: string; type: PublicEventType; stored: StoredEvent };

/** `event` is an index into the events of the batch. */
type PlannedDelivery = { subscriptionId: number; event: number; payloadFormat: PayloadFormat };

type Planned = { events: PlannedEvent[]; deliveries: PlannedDelivery[] };

/** The ids of the events come first, then those of the deliveries. */
type Saved = Planned & { ids: number[] };

const IDS = {
  name: 'webhook_ids',
  text: 'select array(select webhook_next_id() from generate_series(1, $1::int)) as ids',
};

/**
 * One statement is one transaction. Everything depends on `moved`: a process that loses the race waits there for the
 * winner's commit, and then writes nothing.
 */
const PLAN = {
  name: 'webhook_plan',
  text: `
    with moved as (
      ${MOVE_CHECKPOINT}
    ), events as (
      insert into webhook_events
        (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
      select * from unnest($5::bigint[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
                           $11::bigint[], $12::timestamptz[])
      where exists (select from moved)
    ), deliveries as (
      insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, next_attempt_at, created_at)
      select x.*, clock_timestamp(), clock_timestamp()
      from unnest($13::bigint[], $14::bigint[], $15::bigint[], $16::text[], $17::bigint[], $18::bigint[],
                  $19::text[], $20::text[]) as x
      where exists (select from moved)
    ), lanes as (
      ${armLanes('select id from unnest($21::bigint[]) as x (id) where exists (select from moved) order by id')}
    )
    select from moved`,
};

/**
 * Turns the log into deliveries, each exactly once: events and checkpoint are written in one transaction that compares
 * the checkpoint first. One process does this at a time. Its lock only saves the others the work; the comparison is
 * what makes it safe.
 */
@Injectable()
export class FanOut {
  private readonly log = new Logger('webhook fan-out');

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly bodies: EventBodies,
    private readonly worker: DeliveryWorker,
    private readonly maintenance: DispatcherMaintenance,
    private readonly replays: Replays,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
    private readonly lock: LeaderLock,
    private readonly types: EventTypes,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) => this.lead(leading));
  }

  private async lead(signal: AbortSignal): Promise<void> {
    const { maintenance, replays } = this;
    const steppedDown = new AbortController();
    const leading = AbortSignal.any([signal, steppedDown.signal]);
    const follow = this.follow(leading).finally(() => steppedDown.abort());
    await Promise.all([follow, maintenance.run(leading), replays.run(leading)]);
  }

  private async follow(signal: AbortSignal): Promise<void> {
    this.log.log('follows the log');
    const follower = {
      batch: BATCH,
      reached: () => checkpointOf(this.pool, PLANNED),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        await this.stalls.during(() => this.advance(from, events, to));
      },
      // A single dispatcher goes on with the other tasks of a leader.
      stepsDown: () => !this.worker.isAlone,
    };
    await followLog(this.store, follower, this.log, signal);
  }

  /** One failing event must delay only what comes after it, and the log must name it. */
  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    try {
      await this.planBatch(from, events, to);
      return;
    } catch (error) {
      if (error instanceof OvertakenError || isDatabaseUnavailable(error)) throw error;
      if (error instanceof UnknownEventTypeError && events.length === 1) throw error;
      this.log.warn(
        `a batch of ${events.length} events failed and is repeated one by one: ${messageOf(error)}`,
      );
    }
    let position = from;
    for (const event of events) {
      const next = event === events.at(-1) ? to : event.position;
      try {
        await this.planBatch(position, [event], next);
        position = next;
      } catch (cause) {
        if (cause instanceof OvertakenError || isDatabaseUnavailable(cause)) throw cause;
        if (cause instanceof UnknownEventTypeError) throw cause;
        throw new Error(`event ${event.id} blocks all webhooks: ${messageOf(cause)}`, { cause });
      }
    }
  }

  private async planBatch(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    const planned = await this.planned(from, events, to);
    for (const { eventId, stored } of planned.events) this.bodies.remember(eventId, stored);
    if (planned.deliveries.length <= PREPARED && this.worker.isAlone) this.prepare(planned);
    this.worker.announce(planned.deliveries.map(({ subscriptionId }) => subscriptionId));
  }

  /** Somebody may be waiting for a single event, so its body is rendered while its lane is being claimed. */
  private prepare({ events, deliveries, ids }: Saved): void {
    const wanted = new Set(deliveries.map(({ event }) => event));
    const refs = events.flatMap(({ eventId, stored }, index) => {
      const seq = ids[index];
      if (seq === undefined || !wanted.has(index)) return [];
      const { accountId } = stored.meta;
      return [{ seq, eventId, accountId, customerId: customerOf(stored) }];
    });
    if (refs.length > 0) this.bodies.prepare(refs);
  }

  private async planned(from: Position, events: StoredEvent[], to: Position): Promise<Saved> {
    const work = async () => {
      const planned = await this.plan(events);
      const ids = await this.metrics.statement(
        'plan',
        () => this.save(from, to, planned),
        () => planned.deliveries.length,
      );
      for (const { stored } of planned.events) this.metrics.planned(stored.meta.recordedAt);
      return { ...planned, ids };
    };
    // The position alone moves often, past events that are not published.
    if (events.length === 0) return work();
    const about = { 'inkpad.events': events.length };
    return traced('webhook fan-out', about, work, { within: ROOT_CONTEXT });
  }

  /** Renders no bodies, because a flood in one store would then delay planning for all others. */
  private async plan(events: StoredEvent[]): Promise<Planned> {
    refuseUnknown(this.types, events);
    const listeners = await this.listeners(events);
    const planned: Planned = { events: [], deliveries: [] };
    for (const stored of events) {
      const type = publicTypeOf(this.types, stored.type);
      if (!type) continue;
      const eventId = publicEventId(stored.id);
      const index = planned.events.push({ eventId, type, stored }) - 1;
      for (const listener of listenersOf({ stored, type }, listeners)) {
        planned.deliveries.push({
          subscriptionId: listener.id,
          event: index,
          payloadFormat: listener.payload_format,
        });
      }
    }
    return planned;
  }

  /** Read after the events, so that it finds every subscription that was created before one of them was recorded. */
  private async listeners(events: StoredEvent[]): Promise<Map<number, Listener[]>> {
    const accountIds = new Set<number>();
    for (const { type, meta } of events) {
      if (publicTypeOf(this.types, type)) accountIds.add(meta.accountId);
    }
    const byAccount = new Map<number, Listener[]>();
    if (accountIds.size === 0) return byAccount;
    const { rows } = await this.pool.query<Listener>({
      name: 'webhook_listeners',
      text: `select id, account_id, events, payload_format, active_from, null as active_until
             from webhook_subscriptions where account_id = any ($1) and enabled
             union all
             select s.id, s.account_id, s.events, s.payload_format, a.active_from, a.active_until
             from webhook_active_spans a join webhook_subscriptions s on s.id = a.subscription_id
             where s.account_id = any ($1)
             order by id`,
      values: [[...accountIds]],
    });
    for (const row of rows) {
      const known = byAccount.get(row.account_id);
      if (known) known.push(row);
      else byAccount.set(row.account_id, [row]);
    }
    return byAccount;
  }

  /** @returns the ids of the events, followed by those of the deliveries */
  private async save(from: Position, to: Position, planned: Planned): Promise<number[]> {
    const ids = await this.ids(planned.events.length + planned.deliveries.length);
    const moved = await withPartitions(this.pool, () =>
      this.pool.query({ ...PLAN, values: planArguments(from, to, planned, ids) }),
    );
    if (moved.rowCount !== 1) throw new OvertakenError();
    return ids;
  }

  /**
   * Taken after the checkpoint was read and before it is moved, so ids rise in the order of the log from batch to
   * batch, whichever process leads. First attempts and the feed follow that order.
   */
  private async ids(count: number): Promise<number[]> {
    if (count === 0) return [];
    const { rows } = await this.pool.query<{ ids: number[] }>({ ...IDS, values: [count] });
    return rows[0]?.ids.map(Number) ?? [];
  }
}

function planArguments(
  from: Position,
  to: Position,
  { events, deliveries }: Planned,
  ids: number[],
): unknown[] {
  const each = <T>(value: (event: PlannedEvent) => T) => events.map(value);
  const eventOf = ({ event }: PlannedDelivery) => {
    const found = events[event];
    if (!found) throw new Error('a planned delivery names no event of its batch');
    return found;
  };
  const every = <T>(value: (delivery: PlannedDelivery) => T) => deliveries.map(value);
  const lanes = [...new Set(deliveries.map(({ subscriptionId }) => subscriptionId))];
  return [
    ...moveArguments(PLANNED, from, to),
    ids.slice(0, events.length),
    each(({ eventId }) => eventId),
    each(({ stored }) => stored.meta.accountId),
    each(({ stored }) => customerOf(stored)),
    each(({ type }) => type),
    each(({ stored }) => stored.stream),
    each(({ stored }) => stored.revision),
    each(({ stored }) => stored.meta.recordedAt),
    ids.slice(events.length),
    every(({ subscriptionId }) => subscriptionId),
    every(({ event }) => ids[event]),
    every((delivery) => eventOf(delivery).eventId),
    every((delivery) => eventOf(delivery).stored.meta.accountId),
    every((delivery) => customerOf(eventOf(delivery).stored)),
    every((delivery) => eventOf(delivery).type),
    every(({ payloadFormat }) => payloadFormat),
    // The same order everywhere; otherwise two transactions could deadlock on each other's lanes.
    lanes.sort((a, b) => a - b),
  ];
}

/** The customer whom the event is about: the body is sealed with their key, and their events stay in order. */
function customerOf({ data: { customerId } }: StoredEvent): number {
  return typeof customerId === 'number' ? customerId : NOBODY;
}

/** Each subscription once, although its spans may overlap where pauses and resumes were asked for at the same time. */
function listenersOf(
  { type, stored }: Omit<PlannedEvent, 'eventId'>,
  listeners: Map<number, Listener[]>,
): Listener[] {
  return (listeners.get(stored.meta.accountId) ?? [])
    .filter((listener) => wants(listener.events, type) && wasActive(listener, stored.position))
    .filter(({ id }, i, all) => all[i - 1]?.id !== id);
}

function wasActive({ active_from: from, active_until: until }: Listener, at: Position): boolean {
  if (!isAfter(at, parsePosition(from))) return false;
  return until === null || !isAfter(at, parsePosition(until));
}
