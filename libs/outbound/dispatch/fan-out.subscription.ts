import { Injectable, Logger } from '@nestjs/common';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import { Pool, type QueryResult } from 'pg';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { runInSpan } from '#platform/kernel/tracing.js';
import { inTransaction } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import {
  lockPosition,
  OvertakenError,
  toStepValues,
  type Step,
} from '#platform/event-store/port/subscription-position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import {
  EventBodies,
  getEventCustomerId,
  type Envelope,
} from '#outbound/public-events/event-bodies.service.js';
import { EventSubjects } from '#outbound/public-events/event-subjects.service.js';
import { findPublicType } from '#outbound/public-events/public-events.js';
import { withPartitions } from '#outbound/public-events/webhook-partitions.service.js';
import { FAN_OUT_SUBSCRIPTION } from '#outbound/subscriptions/delivery-requests.service.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { DispatcherMaintenance } from './dispatcher-maintenance.service.js';
import {
  createDeliveries,
  ENQUEUE,
  FIND_LISTENERS,
  MAX_PREPARED,
  toEnqueueArguments,
  type EnqueueRow,
  type Listener,
  type PublicEvent,
} from './enqueue-statement.js';
import { Replays } from './replays.service.js';

const NAME = 'webhook fan-out';
const MAX_UNHEARD = 10_000;
/** Of stores, and in the characters of what is compared. */
const MAX_CACHED_LISTENERS = { stores: 1_000, length: 4_096 };

/** @property text as the database renders them, to compare them */
type StoreListeners = { text: string; listeners: Listener[] };

/**
 * Turns the log into deliveries, each exactly once: a delivery of each public event for each subscription that listens to
 * it and the position are written in one statement that compares the position first. What can be prepared is in that
 * statement too: the bodies of a few events, and the leases of their queues.
 */
@Injectable()
export class FanOut {
  private readonly log = new Logger(NAME);
  /** Stores whose last event had no listener. */
  private readonly unheard = new LRUCache<number, true>({ max: MAX_UNHEARD });
  /** The listeners of stores as they were last read. Whether they still are is asked where they are used. */
  private readonly listenerCache = new LRUCache<number, StoreListeners>({
    max: MAX_CACHED_LISTENERS.stores,
  });

  constructor(
    private readonly followers: Followers,
    private readonly pool: Pool,
    private readonly types: EventTypes,
    private readonly bodies: EventBodies,
    private readonly subjects: EventSubjects,
    private readonly metrics: DeliveryMetrics,
    private readonly worker: DeliveryWorker,
    private readonly maintenance: DispatcherMaintenance,
    private readonly replays: Replays,
    private readonly stalls: StallDetector,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.followers.run(
      {
        name: NAME,
        lock: LOCKS.fanOut,
        subscription: FAN_OUT_SUBSCRIPTION,
        batch: 500,
        effect: 'no webhook is enqueued',
        advance: (step, events) =>
          this.stalls.watch(() => {
            // The position alone moves often, past events that are not published.
            if (events.length === 0) return this.enqueue(step, events);
            const about = { 'inkpad.events': events.length };
            return runInSpan(NAME, about, () => this.enqueue(step, events), {
              parent: ROOT_CONTEXT,
            });
          }),
        // A single dispatcher goes on with the other tasks of a leader.
        shouldStepDown: () => !this.worker.isAlone,
        runBeside: (leading) => {
          this.log.log('follows the log');
          return Promise.all([this.maintenance.run(leading), this.replays.run(leading)]);
        },
      },
      signal,
    );
  }

  /** @throws OvertakenError when another process has moved the position, or what was cached is out of date */
  private async enqueue(step: Step, stored: StoredEvent[]): Promise<void> {
    const { claimingDispatcherId: dispatcherId } = this.worker;
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
    const values = toStepValues(step, [
      ...toEnqueueArguments(events, deliveries, dispatcherId),
      compared && [compared.accountId],
      compared?.text ?? null,
    ]);
    const { rows } = await this.metrics.timeStatement(
      'enqueue',
      () =>
        withPartitions(this.pool, () =>
          step.kind === 'log'
            ? this.pool.query<EnqueueRow>({ ...ENQUEUE.log, values })
            : this.enqueuePostponed(values),
        ),
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
    this.worker.handOver(
      rows,
      deliveries.map(({ subscriptionId }) => subscriptionId),
      startedAt,
    );
  }

  /** Enqueues a postponed event. Waits for locks and runs for less time than those who follow the log wait for it. */
  private enqueuePostponed(values: unknown[]): Promise<QueryResult<EnqueueRow>> {
    return inTransaction(this.pool, async (client) => {
      await lockPosition(client, FAN_OUT_SUBSCRIPTION);
      await client.query(`set local statement_timeout = '5s'`);
      return client.query<EnqueueRow>({ ...ENQUEUE.postponed, values });
    });
  }

  /** What is published of the events. */
  private getPublicEvents(events: StoredEvent[]): PublicEvent[] {
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
    if (events.length > MAX_PREPARED) return new Map();
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
