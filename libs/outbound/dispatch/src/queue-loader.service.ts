import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { getErrorMessage } from '#kernel/errors.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { DATABASE_RETRY_MS, isTransient } from '#database/connection.js';
import { EventBodies } from '#public-events/event-bodies.service.js';
import { DeliveryAttempts, toEventRef } from './delivery-attempts.service.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { LoadRequest } from './delivery-queue.js';
import { DeliveryQueues, type LeasedQueue } from './delivery-queues.service.js';
import { PendingDeliveries } from './pending-deliveries.service.js';
import { QueueLeases } from './queue-leases.service.js';

/** Few enough that the first ones need not wait for the bodies of all. */
const LOAD_BATCH_SIZE = 32;

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

/** Loads due deliveries with their bodies into the queues that ask for them, and fails those that are not sent. */
@Injectable()
export class QueueLoader {
  private readonly log = new Logger('webhook deliveries');
  private loading: Promise<void> | undefined;
  /** Apart from the loading, because there may be very many: a slice of each queue in turn. */
  private failing: Promise<void> = Promise.resolve();

  constructor(
    private readonly queues: DeliveryQueues,
    private readonly leases: QueueLeases,
    private readonly pending: PendingDeliveries,
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
    const { views } = await this.pending.load(this.leases.dispatcherId, [queue.requestLoad(0, 0)]);
    this.applyView(queue, views);
    queue.endLoad();
  }

  private async loadAll(): Promise<void> {
    // Queues that ask in the same turn of the event loop are loaded together.
    await new Promise((resolve) => setImmediate(resolve));
    while (!this.queues.isStopping) {
      if (!this.attempts.knowsErasures) {
        // As after a pause of this process: what is read now would have to be read again.
        await wait(ERASURES_RETRY_MS);
        continue;
      }
      const batch = this.queues.takeNeedingRefill(LOAD_BATCH_SIZE);
      if (batch.length === 0) break;
      for (const queue of batch) queue.operation = 'loading';
      try {
        await this.stalls.watch(() => this.load(batch));
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
    // In the same step that saw no queue waiting: a later request starts anew.
    this.loading = undefined;
  }

  private async load(batch: LeasedQueue[]): Promise<void> {
    const { roomPerQueue, maxHeld } = this.queues;
    const requests = batch.map((queue) => queue.requestLoad(roomPerQueue, maxHeld));
    const { views, deliveries } = await this.pending.load(this.leases.dispatcherId, requests);
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
      deliveries.push(...(await this.pending.takeRedeliveries(ids)));
    }
    for (const delivery of deliveries) sortDelivery(refills.get(delivery.subscriptionId), delivery);
    await this.addDeliveries([...refills.values()], roomPerQueue);
  }

  /** @returns whether this process still has the queue */
  private applyView(
    queue: LeasedQueue,
    views: Awaited<ReturnType<PendingDeliveries['load']>>['views'],
  ): boolean {
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
          isEmpty = !(await this.stalls.watch(() => this.pending.giveUp(queue.id, before)));
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
      // A delivery without a body also takes its turn, and then fails or is due later, without being sent.
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
