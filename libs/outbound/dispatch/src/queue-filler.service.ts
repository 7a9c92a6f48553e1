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
import { QueueLeases } from './queue-leases.service.js';
import { LeasedQueues, type LoadedDelivery, type WorkerQueue } from './leased-queues.service.js';
import { PendingDeliveries } from './pending-deliveries.service.js';

/** Few enough that the first ones need not wait for the bodies of all. */
const VIEW_BATCH_SIZE = 32;

type QueueCounts = { firsts: number; retries: number; outdated: Date | undefined };

/** Loads due deliveries with their bodies into the queues that ask for them. */
@Injectable()
export class QueueFiller {
  private readonly log = new Logger('webhook deliveries');
  private filling: Promise<void> | undefined;
  /**
   * Queues whose deliveries enqueued before then are being failed, apart from the filling, because there may be very
   * many.
   */
  private readonly outdated = new Map<WorkerQueue, Date | 'infinity'>();
  private givingUp: Promise<void> | undefined;

  constructor(
    private readonly queues: LeasedQueues,
    private readonly leases: QueueLeases,
    private readonly pending: PendingDeliveries,
    private readonly bodies: EventBodies,
    private readonly attempts: DeliveryAttempts,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
  ) {
    queues.onRefillNeeded(() => {
      this.filling ??= this.fill();
    });
  }

  /** Resolves when what is being filled or failed now is done. */
  async finish(): Promise<void> {
    await Promise.all([this.filling, this.givingUp]);
  }

  /** @returns those of the queues that this process still owns */
  async view(batch: WorkerQueue[]): Promise<WorkerQueue[]> {
    const closing = batch.filter(({ awaitsView }) => awaitsView);
    const views = new Map(
      (await this.leases.readViews(batch.map(({ id }) => id))).map((view) => [
        view.subscriptionId,
        view,
      ]),
    );
    for (const queue of closing) {
      if (!queue.awaitsView) continue;
      // These were loaded while the end was being recorded.
      this.queues.drop(queue);
      queue.reopen();
    }
    const now = performance.now();
    return batch.filter((queue) => {
      const view = views.get(queue.id);
      if (view) queue.applyView(view, now);
      else {
        this.metrics.countLost();
        this.queues.markLost(queue);
      }
      return view !== undefined;
    });
  }

  private async fill(): Promise<void> {
    const { needingRefill } = this.queues;
    // Queues that ask in the same turn of the event loop are filled together.
    await new Promise((resolve) => setImmediate(resolve));
    while (needingRefill.size > 0 && !this.queues.isStopping) {
      const batch = [...needingRefill].slice(0, VIEW_BATCH_SIZE);
      for (const queue of batch) {
        needingRefill.delete(queue);
        queue.needsRefill = false;
        queue.operation = 'filling';
      }
      try {
        await this.stalls.watch(() => this.fillBatch(batch));
      } catch (error) {
        this.log[isTransient(error) ? 'warn' : 'error'](
          `queues could not be filled: ${getErrorMessage(error)}`,
        );
        for (const queue of batch) this.queues.startOver(queue);
        await wait(DATABASE_RETRY_MS);
      } finally {
        for (const queue of batch) queue.endRefill();
      }
    }
    // In the same step that saw no queue waiting: a later request starts a new fill.
    this.filling = undefined;
  }

  private async fillBatch(batch: WorkerQueue[]): Promise<void> {
    const sendable: WorkerQueue[] = [];
    for (const queue of await this.view(batch)) {
      if (this.canSendMore(queue)) sendable.push(queue);
      else await this.suspend(queue);
    }
    const { roomPerQueue, maxHeld } = this.queues;
    const refillable = sendable.filter((queue) => queue.canRefill(roomPerQueue));
    if (refillable.length === 0) return;
    const deliveries = await this.pending.take(
      refillable.map((queue) => queue.createRefillRequest(roomPerQueue, maxHeld)),
    );
    const withRedeliveries = refillable.filter(({ hasRedelivery }) => hasRedelivery);
    if (withRedeliveries.length > 0) {
      deliveries.push(
        ...(await this.pending.takeRedeliveries(withRedeliveries.map(({ id }) => id))),
      );
    }
    await this.distribute(refillable, deliveries, roomPerQueue);
  }

  /** Whether more of the queue may be sent. */
  private canSendMore(queue: WorkerQueue): boolean {
    if (queue.isClosing) return false;
    queue.hold = 'none';
    return queue.target?.enabled === true && !queue.isGivingUp;
  }

  /** Leaves what may not be sent for a resume, or fails it. */
  private async suspend(queue: WorkerQueue): Promise<void> {
    const { id, target, deliveries } = queue;
    if (queue.isClosing || target?.enabled) return;
    this.queues.drop(queue);
    deliveries.hasMore = false;
    if (target?.disabledReason === 'disabled_by_user') {
      queue.hold = 'paused';
      return;
    }
    // Deleted, or disabled because of failures: what is pending will not be sent.
    if (!queue.takeGivenUp()) this.giveUp(queue, 'infinity');
    else if (target) queue.hold = 'paused';
    else if (queue.isIdle) {
      if (await this.leases.deleteQueue(id, queue.enqueued)) this.queues.markLost(queue);
      else this.queues.requestRefill(queue);
    }
  }

  private giveUp(queue: WorkerQueue, before: Date | 'infinity'): void {
    queue.isGivingUp = true;
    this.outdated.set(queue, before);
    this.givingUp ??= this.giveUpAll();
  }

  /** Fails a slice of each queue in turn. */
  private async giveUpAll(): Promise<void> {
    while (this.outdated.size > 0 && !this.queues.isStopping) {
      for (const [queue, before] of this.outdated) {
        if (this.queues.isStopping) break;
        if (await this.giveUpBatch(queue, before)) continue;
        if (this.outdated.get(queue) !== before) continue;
        this.outdated.delete(queue);
        queue.endGivingUp(before === 'infinity');
        this.queues.requestRefill(queue);
      }
    }
    this.givingUp = undefined;
  }

  private async giveUpBatch(queue: WorkerQueue, before: Date | 'infinity'): Promise<boolean> {
    if (queue.isLost) return false;
    try {
      return await this.stalls.watch(() => this.pending.giveUp(queue.id, before));
    } catch (error) {
      this.log[isTransient(error) ? 'warn' : 'error'](
        `deliveries could not be failed: ${getErrorMessage(error)}`,
        { subscription_id: queue.id },
      );
      await wait(DATABASE_RETRY_MS);
      return true;
    }
  }

  private async distribute(
    refillable: WorkerQueue[],
    deliveries: Delivery[],
    room: number,
  ): Promise<void> {
    const counts = new Map<WorkerQueue, QueueCounts>();
    const newDeliveries = deliveries.filter((delivery) =>
      this.countDelivery(delivery as LoadedDelivery, counts),
    );
    await this.addLoaded(newDeliveries);
    for (const queue of refillable) {
      const queueCounts = counts.get(queue) ?? { firsts: 0, retries: 0, outdated: undefined };
      if (queueCounts.outdated) this.giveUp(queue, queueCounts.outdated);
      queue.updateHasMore(queueCounts, room, queueCounts.outdated !== undefined);
      if (queue.deliveries.waitingCount > 0) this.queues.markReady(queue);
      else if (queue.deliveries.hasMore) this.queues.requestRefill(queue);
    }
    this.attempts.dispatchNext();
  }

  /** @returns whether the delivery is to be sent */
  private countDelivery(delivery: LoadedDelivery, counts: Map<WorkerQueue, QueueCounts>): boolean {
    const queue = this.queues.get(delivery.subscriptionId);
    if (!queue) return false;
    const queueCounts = counts.get(queue) ?? { firsts: 0, retries: 0, outdated: undefined };
    counts.set(queue, queueCounts);
    if (!delivery.manual) queueCounts[delivery.tries === 0 ? 'firsts' : 'retries']++;
    if (!queue.isNew(delivery)) return false;
    const outdated = queue.findCutoff(delivery);
    if (outdated) queueCounts.outdated = outdated;
    return outdated === undefined;
  }

  private async addLoaded(newDeliveries: Delivery[]): Promise<void> {
    const readAt = performance.now();
    const texts = await this.bodies.getTexts(newDeliveries.map(toEventRef));
    const byQueue = new Map<WorkerQueue, LoadedDelivery[]>();
    for (const delivery of newDeliveries) {
      const queue = this.queues.get(delivery.subscriptionId);
      if (!queue) continue;
      // A delivery without a body also takes its turn, and then fails or is due later, without being sent.
      const body = texts.get(delivery.eventSeq) ?? 'unrendered';
      // One object, not a copy: there are thousands a second of these.
      const loaded = Object.assign(delivery, { body, readAt });
      const others = byQueue.get(queue);
      if (others) others.push(loaded);
      else byQueue.set(queue, [loaded]);
    }
    for (const [queue, deliveries] of byQueue) this.queues.add(queue, deliveries);
  }
}
