import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { DATABASE_RETRY_MS, isTransient } from '#platform/database/connection.js';
import { EventBodies } from '#outbound/public-events/event-bodies.service.js';
import { withPartitions } from '#outbound/public-events/webhook-partitions.service.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import { DeliveryAttempts, toEventRef } from './delivery-attempts.service.js';
import type { Delivery, QueueView } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { LoadRequest, Tier } from './delivery-queue.js';
import { DeliveryQueues, type LeasedQueue } from './delivery-queues.service.js';
import {
  FORGET_REDELIVERIES,
  GIVE_UP,
  GIVE_UP_BATCH_SIZE,
  LOAD,
  TAKE_REDELIVERIES,
  toDelivery,
  type DeliveryRow,
  type LoadedRow,
  type ViewRow,
} from './load-statements.js';
import { QueueLeases } from './queue-leases.service.js';

/** Few enough that the first ones need not wait for the bodies of all. */
const LOAD_BATCH_SIZE = 32;

/** What the statement that claimed a queue has read of it is not used later than this. */
const MAX_CLAIM_MS = 1_000;

/** How often the loader looks whether this process knows all erasures again. */
const ERASURES_RETRY_MS = 50;

/**
 * A queue into which deliveries are loaded.
 * @property firsts how many first attempts the database showed @property retries how many due retries
 * @property outdated the moment before which deliveries are too old to be sent, if there was one
 */
type Refill = {
  queue: LeasedQueue;
  request: LoadRequest;
  firsts: number;
  retries: number;
  outdated: Date | undefined;
  deliveries: Delivery[];
};

type Loaded = { views: Map<number, QueueView>; deliveries: Delivery[] };

/** Loads due deliveries with their bodies into the queues that ask for them, and fails those that are not sent. */
@Injectable()
export class QueueLoader {
  private readonly log = new Logger('webhook deliveries');
  private loading: Promise<void> | undefined;
  /** Apart from the loading, because there may be very many: a slice of each queue in turn. */
  private failing: Promise<void> = Promise.resolve();

  constructor(
    private readonly pool: Pool,
    private readonly secrets: WebhookSecrets,
    private readonly queues: DeliveryQueues,
    private readonly leases: QueueLeases,
    private readonly bodies: EventBodies,
    private readonly attempts: DeliveryAttempts,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
  ) {
    queues.onRefillNeeded(() => {
      this.loading ??= this.loadAll();
    });
  }

  /** Resolves when what is being loaded or failed now is done. */
  async finish(): Promise<void> {
    await Promise.all([this.loading, this.failing]);
  }

  /** Reads the state of a queue without its deliveries. */
  async view(queue: LeasedQueue): Promise<void> {
    const { views } = await this.read([queue.requestLoad(0, 0)]);
    this.applyView(queue, views);
    queue.endLoad();
  }

  /**
   * Leases queues that a statement has claimed.
   * @param claimed their tiers, by subscription id
   * @param rows what that statement has read of them
   * @param since a moment before that, by `performance.now()`
   */
  lease(claimed: Iterable<[number, Tier]>, rows: LoadedRow[] = [], since = -Infinity): void {
    const isFresh =
      !this.loading && this.attempts.knowsErasures && performance.now() - since < MAX_CLAIM_MS;
    const loaded = this.toLoaded(isFresh ? rows : []);
    const read: LeasedQueue[] = [];
    const unread: LeasedQueue[] = [];
    for (const [id, tier] of claimed) {
      const isNew = !this.queues.get(id);
      (isNew && loaded.views.has(id) ? read : unread).push(this.queues.lease(id, tier));
    }
    if (read.length > 0) this.loading = this.loadAll(read, loaded);
    for (const queue of unread) this.queues.requestRefill(queue);
  }

  /** @param read queues of which `loaded` was read already */
  private async loadAll(read: LeasedQueue[] = [], loaded?: Loaded): Promise<void> {
    if (read.length > 0) await this.loadBatch(read, loaded);
    // Queues that ask in the same turn of the event loop are loaded together.
    else await new Promise((resolve) => setImmediate(resolve));
    while (!this.queues.isStopping) {
      if (!this.attempts.knowsErasures) {
        // As after a pause of this process: what is read now would have to be read again.
        await wait(ERASURES_RETRY_MS);
        continue;
      }
      const batch = this.queues.takeNeedingRefill(LOAD_BATCH_SIZE);
      if (batch.length === 0) break;
      await this.loadBatch(batch);
    }
    // In the same step that saw no queue waiting: a later request starts anew.
    this.loading = undefined;
  }

  private async loadBatch(batch: LeasedQueue[], loaded?: Loaded): Promise<void> {
    for (const queue of batch) queue.operation = 'loading';
    try {
      await this.stalls.watch(() => this.load(batch, loaded));
    } catch (error) {
      this.log[isTransient(error) ? 'warn' : 'error'](
        `queues could not be loaded: ${getErrorMessage(error)}`,
      );
      for (const queue of batch) this.queues.startOver(queue);
      await wait(DATABASE_RETRY_MS);
    } finally {
      for (const queue of batch) queue.endLoad();
    }
  }

  private async load(batch: LeasedQueue[], loaded?: Loaded): Promise<void> {
    const { roomPerQueue, maxHeld } = this.queues;
    const requests = batch.map((queue) => queue.requestLoad(roomPerQueue, maxHeld));
    const { views, deliveries } = loaded ?? (await this.read(requests));
    const refills = new Map<number, Refill>();
    for (const [i, queue] of batch.entries()) {
      const request = requests[i];
      if (!request || !this.applyView(queue, views)) continue;
      if (!queue.isAsOf(request)) this.queues.startOver(queue);
      else if (queue.state === 'draining' || queue.state === 'ending') continue;
      else if (queue.target?.enabled !== true) await this.suspend(queue);
      else {
        queue.activate();
        if (request.room === 0) continue;
        const counts = { firsts: 0, retries: 0, outdated: undefined };
        refills.set(queue.id, { queue, request, ...counts, deliveries: [] });
      }
    }
    if (refills.size === 0) return;
    const withRedelivery = [...refills.values()].filter(({ queue }) => queue.hasRedelivery);
    if (withRedelivery.length > 0) {
      const ids = withRedelivery.map(({ queue }) => queue.id);
      deliveries.push(...(await this.takeRedeliveries(ids)));
    }
    for (const delivery of deliveries) sortDelivery(refills.get(delivery.subscriptionId), delivery);
    await this.addDeliveries([...refills.values()], roomPerQueue);
  }

  /** @returns whether this process still has the queue */
  private applyView(queue: LeasedQueue, views: Loaded['views']): boolean {
    const view = views.get(queue.id);
    if (view) queue.applyView(view, performance.now());
    else {
      this.metrics.countLost();
      this.queues.markLost(queue);
    }
    return view !== undefined;
  }

  /** Leaves what may not be sent for a resume, or fails it. */
  private async suspend(queue: LeasedQueue): Promise<void> {
    const { id, target, enqueuedCount, state } = queue;
    const isGivenUp = state === 'given-up';
    if (target && (isGivenUp || target.disabledReason === 'disabled_by_user')) {
      queue.suspend('paused');
      return;
    }
    // Deleted, or disabled because of failures: what is pending will not be sent.
    queue.suspend('giving-up');
    if (!isGivenUp) this.fail(queue, 'infinity');
    else if (queue.isIdle) {
      if (await this.leases.deleteQueue(id, enqueuedCount)) this.queues.markLost(queue);
      else this.queues.requestRefill(queue);
    }
  }

  /** Fails a slice of what was enqueued in the queue before then, and loads it again. */
  private fail(queue: LeasedQueue, before: Date | 'infinity'): void {
    queue.operation = 'failing';
    this.failing = this.failing.then(async () => {
      let isEmpty = false;
      try {
        if (queue.state !== 'lost' && !this.queues.isStopping) {
          isEmpty = !(await this.stalls.watch(() => this.giveUp(queue.id, before)));
        }
      } catch (error) {
        this.log[isTransient(error) ? 'warn' : 'error'](
          `deliveries could not be failed: ${getErrorMessage(error)}`,
          { subscription_id: queue.id },
        );
        await wait(DATABASE_RETRY_MS);
      }
      queue.endFailing(isEmpty);
      this.queues.requestRefill(queue);
    });
  }

  private async addDeliveries(refills: Refill[], room: number): Promise<void> {
    const readAt = performance.now();
    const texts = await this.bodies.getTexts(
      refills.flatMap(({ deliveries }) => deliveries.map(toEventRef)),
    );
    for (const refill of refills) {
      const { queue, request, deliveries, outdated } = refill;
      if (!queue.isAsOf({ ...request, state: 'active' })) {
        this.queues.startOver(queue);
        continue;
      }
      // A delivery without a body also keeps its place in the order, and then fails or is due later, without being sent.
      for (const delivery of deliveries) {
        delivery.body = texts.get(delivery.eventSeq) ?? 'unrendered';
        delivery.readAt = readAt;
      }
      queue.add(deliveries);
      queue.updateHasMore(refill, room, outdated !== undefined);
      this.queues.markReady(queue);
      if (outdated) this.fail(queue, outdated);
      else if (queue.waitingCount === 0 && queue.hasMore) this.queues.requestRefill(queue);
    }
    this.attempts.dispatchNext();
  }

  /** Reads nothing of queues that another dispatcher has claimed meanwhile. */
  private async read(requests: LoadRequest[]): Promise<Loaded> {
    const values = [
      this.leases.dispatcherId,
      requests.map((request) => request.subscriptionId),
      requests.map((request) => request.after),
      requests.map((request) => request.room),
      requests.map((request) => request.skip),
    ];
    return this.metrics.timeStatement(
      'take',
      async () => this.toLoaded((await this.pool.query<LoadedRow>({ ...LOAD, values })).rows),
      ({ deliveries }) => deliveries.length,
    );
  }

  private toLoaded(rows: LoadedRow[]): Loaded {
    const views = new Map<number, QueueView>();
    const deliveries: Delivery[] = [];
    for (const row of rows) {
      if (row.id === null) views.set(row.subscriptionId, this.toQueueView(row));
      else deliveries.push(toDelivery(row));
    }
    return { views, deliveries };
  }

  private async takeRedeliveries(subscriptionIds: number[]): Promise<Delivery[]> {
    await this.pool.query({ ...FORGET_REDELIVERIES, values: [subscriptionIds] });
    const { rows } = await this.pool.query<DeliveryRow>({
      ...TAKE_REDELIVERIES,
      values: [subscriptionIds],
    });
    return rows.map(toDelivery);
  }

  /** Fails some of what was enqueued before then. @returns whether there may be more */
  async giveUp(subscriptionId: number, before: Date | 'infinity'): Promise<boolean> {
    return withPartitions(this.pool, async () => {
      const { rows } = await this.pool.query<{ n: number }>({
        ...GIVE_UP,
        values: [subscriptionId, before],
      });
      this.metrics.countGivenUp(rows[0]?.n ?? 0);
      return rows[0]?.n === GIVE_UP_BATCH_SIZE;
    });
  }

  private toQueueView(row: ViewRow): QueueView {
    const { subscriptionId, enqueued_count: enqueuedCount, has_redelivery: hasRedelivery } = row;
    const open = (sealed: Buffer) => this.secrets.open(subscriptionId, sealed);
    const target = row.target_url !== null && {
      url: row.target_url,
      secret: open(row.secret),
      previousSecret: (row.previous_secret && open(row.previous_secret)) ?? undefined,
      headers:
        row.headers === null ? undefined : this.secrets.openHeaders(subscriptionId, row.headers),
      personalData: row.personal_data,
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      giveUpBefore: row.give_up_before,
      failingSince: row.failing_since,
    };
    return { subscriptionId, enqueuedCount, hasRedelivery, target: target || undefined };
  }
}

/** Adds the delivery to those to be sent, unless it is known already or too old. */
function sortDelivery(refill: Refill | undefined, delivery: Delivery): void {
  if (!refill) return;
  const { queue } = refill;
  if (!delivery.manual) refill[delivery.tries === 0 ? 'firsts' : 'retries']++;
  if (!queue.isNew(delivery)) return;
  const outdated = queue.findCutoff(delivery);
  if (outdated) refill.outdated = outdated;
  else refill.deliveries.push(delivery);
}
