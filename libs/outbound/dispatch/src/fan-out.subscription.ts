import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { toPublicEventId } from '#kernel/public-id.js';
import { ROOT_CONTEXT, runInSpan } from '#kernel/tracing.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import { readCheckpoint, toMoveArguments, OvertakenError } from '#event-store/port/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes, UnknownEventTypeError } from '#event-store/port/event-types.js';
import { followLog } from '#event-store/log/follow-log.js';
import { isAfter, parsePosition } from '#event-store/port/position.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import {
  getEventCustomerId,
  EventBodies,
  type Envelope,
} from '#public-events/event-bodies.service.js';
import { findPublicType, assertKnownTypes } from '#public-events/public-events.js';
import { DispatcherMaintenance } from './dispatcher-maintenance.service.js';
import { QueueLeases } from './queue-leases.service.js';
import type { LoadedDelivery } from './leased-queues.service.js';
import {
  ENQUEUE,
  toEnqueueArguments,
  type ClaimedDelivery,
  type EnqueueBatch,
  type EnqueuedEvent,
  type EnqueueRow,
} from './enqueue-statement.js';
import { Replays } from './replays.service.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { FAN_OUT_CHECKPOINT } from '#subscriptions/delivery-requests.service.js';
import { isSubscribedTo } from '#subscriptions/webhook-subscription.js';
import { type PayloadFormat } from '#public-events/public-event.js';

const LEADERSHIP = { name: 'webhook fan-out', lock: 727_001 };
const BATCH_SIZE = 500;
/** With no more events than this in a batch, their bodies are rendered and their queues claimed with their deliveries. */
const MAX_RENDERED_AHEAD = 8;
const MAX_UNHEARD = 10_000;

type Listener = {
  id: number;
  account_id: number;
  events: string[];
  payload_format: PayloadFormat;
  active_from: string;
  /** Null while it is still enabled. */
  active_until: string | null;
};

/**
 * Turns the log into deliveries, each exactly once: events and checkpoint are written in one transaction that compares
 * the checkpoint first. One process does this at a time. Its lock only saves the others the work; the comparison is
 * what makes it safe.
 */
@Injectable()
export class FanOut {
  private readonly log = new Logger('webhook fan-out');
  /** Stores whose last event had no listener. */
  private readonly unheard = new LRUCache<number, true>({ max: MAX_UNHEARD });

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly bodies: EventBodies,
    private readonly worker: DeliveryWorker,
    private readonly leases: QueueLeases,
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
      batch: BATCH_SIZE,
      readPosition: () => readCheckpoint(this.pool, FAN_OUT_CHECKPOINT),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        await this.stalls.watch(() => this.advance(from, events, to));
      },
      // A single dispatcher goes on with the other tasks of a leader.
      shouldStepDown: () => !this.worker.isAlone,
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }

  /** One failing event must delay only what comes after it, and the log must name it. */
  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    try {
      await this.enqueueBatch(from, events, to);
      return;
    } catch (error) {
      if (error instanceof OvertakenError || isDatabaseUnavailable(error)) throw error;
      if (error instanceof UnknownEventTypeError && events.length === 1) throw error;
      this.log.warn(
        `a batch of ${events.length} events failed and is repeated one by one: ${getErrorMessage(error)}`,
      );
    }
    let position = from;
    for (const event of events) {
      const next = event === events.at(-1) ? to : event.position;
      try {
        await this.enqueueBatch(position, [event], next);
        position = next;
      } catch (cause) {
        if (cause instanceof OvertakenError || isDatabaseUnavailable(cause)) throw cause;
        if (cause instanceof UnknownEventTypeError) throw cause;
        throw new Error(`event ${event.id} blocks all webhooks: ${getErrorMessage(cause)}`, {
          cause,
        });
      }
    }
  }

  private async enqueueBatch(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    const work = async () => {
      const readAt = performance.now();
      const publicEvents = this.getPublicEvents(events);
      const dispatcherId =
        publicEvents.length <= MAX_RENDERED_AHEAD ? this.worker.claimingDispatcherId : null;
      // The slower of the two is asked for first.
      const [envelopes, listeners] = await Promise.all([
        dispatcherId === null ? new Map<string, Envelope>() : this.renderAhead(publicEvents),
        this.readListeners(publicEvents),
      ]);
      const batch = createBatch(publicEvents, listeners, envelopes);
      const rows = await this.metrics.timeStatement(
        'enqueue',
        () => this.save(from, to, batch, dispatcherId),
        () => batch.deliveries.length,
      );
      for (const { stored } of publicEvents) this.metrics.observeEnqueued(stored.meta.recordedAt);
      this.handOver(batch, rows, envelopes, readAt);
    };
    // The position alone moves often, past events that are not published.
    if (events.length === 0) return work();
    const about = { 'inkpad.events': events.length };
    return runInSpan('webhook fan-out', about, work, { parent: ROOT_CONTEXT });
  }

  /** What is published of the events. */
  private getPublicEvents(events: StoredEvent[]): EnqueuedEvent[] {
    assertKnownTypes(this.types, events);
    return events.flatMap((stored) => {
      const type = findPublicType(this.types, stored.type);
      if (!type) return [];
      return {
        eventId: toPublicEventId(stored.id),
        customerId: getEventCustomerId(stored),
        type,
        stored,
      };
    });
  }

  /**
   * Somebody may be waiting for a single event. The bodies of many are rendered later, because a flood in one store would
   * otherwise delay planning for all others.
   */
  private async renderAhead(publicEvents: EnqueuedEvent[]): Promise<Map<string, Envelope>> {
    const likely = publicEvents.filter(({ stored }) => !this.unheard.has(stored.meta.accountId));
    if (likely.length === 0) return new Map();
    return this.bodies.renderAhead(likely.map(({ stored }) => stored));
  }

  /** Read after the events, so that it finds every subscription that was created before one of them was recorded. */
  private async readListeners(publicEvents: EnqueuedEvent[]): Promise<Map<number, Listener[]>> {
    const accountIds = new Set(publicEvents.map(({ stored }) => stored.meta.accountId));
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
      const others = byAccount.get(row.account_id);
      if (others) others.push(row);
      else byAccount.set(row.account_id, [row]);
    }
    for (const id of accountIds) {
      if (byAccount.has(id)) this.unheard.delete(id);
      else this.unheard.set(id, true);
    }
    return byAccount;
  }

  /** @returns the deliveries whose queues belong to this process */
  private async save(
    from: Position,
    to: Position,
    batch: EnqueueBatch,
    dispatcherId: string | null,
  ): Promise<ClaimedDelivery[]> {
    const values = toEnqueueArguments(
      toMoveArguments(FAN_OUT_CHECKPOINT, from, to),
      batch,
      dispatcherId,
    );
    const { rows } = await withPartitions(this.pool, () =>
      this.pool.query<EnqueueRow>({ ...ENQUEUE, values }),
    );
    if (rows.length === 0) throw new OvertakenError();
    return rows.filter((row) => row.id !== null);
  }

  /** To whoever sends: what is already here need not be read again. */
  private handOver(
    { events, deliveries }: EnqueueBatch,
    rows: ClaimedDelivery[],
    envelopes: Map<string, Envelope>,
    readAt: number,
  ): void {
    for (const { eventId, stored, body } of events) {
      if (!body) this.bodies.remember(eventId, stored);
    }
    const queues = new Map<number, ClaimedDelivery[]>();
    for (const row of rows) {
      const id = row.subscription_id;
      queues.set(id, [...(queues.get(id) ?? []), row]);
    }
    let claimedCount = 0;
    for (const queueRows of queues.values()) {
      const [first] = queueRows;
      if (!first) continue;
      const loaded = queueRows.flatMap((row) => {
        const event = events[row.event];
        const body = event && envelopes.get(event.eventId)?.text;
        if (!body) return [];
        this.bodies.rememberStored(row.seq, body, readAt);
        return toLoadedDelivery(row, event, body, readAt);
      });
      const isAll = !first.has_others && loaded.length === queueRows.length;
      if (
        this.worker.takeOver(this.leases.toQueueView(first), first.tier, isAll ? loaded : undefined)
      ) {
        claimedCount++;
      }
    }
    this.metrics.countClaimed(claimedCount, 0);
    const others = deliveries.filter(({ subscriptionId: id }) => !queues.has(id));
    this.worker.announce(others.map(({ subscriptionId }) => subscriptionId));
  }
}

function createBatch(
  publicEvents: EnqueuedEvent[],
  listeners: Map<number, Listener[]>,
  envelopes: Map<string, Envelope>,
): EnqueueBatch {
  const batch: EnqueueBatch = { events: publicEvents, deliveries: [] };
  for (const [index, event] of publicEvents.entries()) {
    const eventListeners = findListeners(event, listeners);
    const body = eventListeners.length > 0 && envelopes.get(event.eventId)?.sealed;
    if (body) event.body = body;
    for (const { id, payload_format: payloadFormat } of eventListeners) {
      batch.deliveries.push({ subscriptionId: id, event: index, payloadFormat });
    }
  }
  return batch;
}

function toLoadedDelivery(
  row: ClaimedDelivery,
  { eventId, customerId, type, stored }: EnqueuedEvent,
  body: Buffer,
  readAt: number,
): LoadedDelivery {
  return {
    id: row.id,
    subscriptionId: row.subscription_id,
    accountId: stored.meta.accountId,
    customerId,
    stream: stored.stream,
    eventSeq: row.seq,
    eventId,
    type,
    payloadFormat: row.payload_format,
    tries: 0,
    manual: false,
    firstAttemptAt: null,
    createdAt: row.at,
    dueAt: row.at,
    redeliveryId: 0,
    body,
    readAt,
  };
}

/** Each subscription once, although its spans may overlap where pauses and resumes were asked for at the same time. */
function findListeners(
  { type, stored }: EnqueuedEvent,
  listeners: Map<number, Listener[]>,
): Listener[] {
  return (listeners.get(stored.meta.accountId) ?? [])
    .filter(
      (listener) => isSubscribedTo(listener.events, type) && wasActive(listener, stored.position),
    )
    .filter(({ id }, i, all) => all[i - 1]?.id !== id);
}

function wasActive({ active_from: from, active_until: until }: Listener, at: Position): boolean {
  if (!isAfter(at, parsePosition(from))) return false;
  return until === null || !isAfter(at, parsePosition(until));
}
