import { Injectable } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import type { Body } from '#public-events/event-bodies.service.js';
import { AttemptSlots } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import type { Tier } from './delivery-queue.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LeasedQueue } from './leased-queue.js';

/** Deliveries kept in memory: in all, of one queue at most, and of each queue at least, even beyond the total. */
const MAX_LOADED = { total: 8_192, perQueue: 64, minPerQueue: 4 };
/** A lease lasts 30 s from its last renewal; in the last seconds nothing new is sent. */
const TRUST_LEASE_MS = 25_000;

/** A delivery in memory, with its body as of `readAt`. */
export type LoadedDelivery = Delivery & { body: Body; readAt: number };

export type WorkerQueue = LeasedQueue<LoadedDelivery>;

/** The queues that this process owns and what is known of them, shared by the services that own, fill and send. */
@Injectable()
export class LeasedQueues {
  readonly slots = new AttemptSlots();
  /** Queues that may have something to send, in rotation. */
  readonly readyQueues: Record<Tier, Set<WorkerQueue>> = {
    fast: new Set(),
    slow: new Set(),
    probe: new Set(),
  };
  /** Queues that wait to be filled. */
  readonly needingRefill = new Set<WorkerQueue>();
  isStopping = false;
  private readonly queues = new Map<number, WorkerQueue>();
  /** Queues lost with attempts in flight: if one is claimed again, those must not be made twice. */
  private readonly lostQueues = new Map<number, WorkerQueue>();
  private waitingCount = 0;
  private renewedAt = performance.now();
  private startRefill: () => void = () => undefined;

  constructor(metrics: DeliveryMetrics) {
    metrics.watch({
      queues: () => this.countByTier(),
      inFlight: () => this.slots.usedByTier,
      waiting: () => this.waitingCount,
      unrecorded: () => this.slots.unrecorded,
    });
  }

  get size(): number {
    return this.queues.size;
  }

  get ids(): Iterable<number> {
    return this.queues.keys();
  }

  get all(): Iterable<WorkerQueue> {
    return this.queues.values();
  }

  get(id: number): WorkerQueue | undefined {
    return this.queues.get(id);
  }

  lease(id: number, tier: Tier): void {
    const existing = this.queues.get(id);
    // It may have been claimed right after its release, whose result comes later than that of the claim.
    if (existing) existing.wasClaimedAgain = existing.operation === 'releasing';
    this.requestRefill(existing ?? this.create(id, tier));
  }

  private create(id: number, tier: Tier): WorkerQueue {
    const queue = new LeasedQueue<LoadedDelivery>(
      id,
      tier,
      performance.now(),
      this.lostQueues.get(id),
    );
    this.queues.set(id, queue);
    return queue;
  }

  /** @param start called in the same turn of the event loop in which a queue asks */
  onRefillNeeded(start: () => void): void {
    this.startRefill = start;
  }

  requestRefill(queue: WorkerQueue): void {
    // A release in progress asks again itself if it fails.
    if (queue.isLost || this.isStopping || queue.operation === 'releasing') return;
    queue.needsRefill = true;
    this.needingRefill.add(queue);
    this.startRefill();
  }

  /** How many deliveries of one queue may be in memory. */
  get roomPerQueue(): number {
    const share = Math.floor(MAX_LOADED.total / Math.max(1, this.queues.size));
    return Math.max(MAX_LOADED.minPerQueue, Math.min(MAX_LOADED.perQueue, share));
  }

  /** How many held deliveries one query may have to skip. */
  readonly maxHeld = 2 * MAX_LOADED.perQueue;

  add(queue: WorkerQueue, deliveries: LoadedDelivery[]): void {
    this.waitingCount += deliveries.length;
    queue.add(deliveries);
  }

  /** A delivery in memory has begun. */
  countStart(): void {
    this.waitingCount--;
  }

  markReady(queue: WorkerQueue): void {
    if (queue.deliveries.waitingCount > 0) this.readyQueues[queue.deliveries.tier].add(queue);
  }

  drop(queue: WorkerQueue): void {
    this.waitingCount -= queue.drop();
  }

  /** Reads all of it again before anything of it is sent. */
  startOver(queue: WorkerQueue): void {
    // It may have been lost and claimed again meanwhile.
    const current = this.queues.get(queue.id) ?? queue;
    this.waitingCount -= current.startOver();
    this.requestRefill(current);
  }

  /** An attempt has ended the subscription of this queue. */
  close(queue: WorkerQueue): void {
    this.waitingCount -= queue.close();
  }

  settle(queue: WorkerQueue, delivery: LoadedDelivery): void {
    queue.settle(delivery, performance.now());
    // The queue may have been claimed again by now, and lost once more.
    this.queues.get(queue.id)?.rememberRecorded(delivery);
    this.lostQueues.get(queue.id)?.rememberRecorded(delivery);
    if (queue.isIdle && this.lostQueues.get(queue.id) === queue) this.lostQueues.delete(queue.id);
  }

  markLost(queue: WorkerQueue): void {
    queue.isLost = true;
    this.drop(queue);
    this.needingRefill.delete(queue);
    for (const ready of Object.values(this.readyQueues)) ready.delete(queue);
    if (this.queues.get(queue.id) === queue) this.queues.delete(queue.id);
    if (!queue.isIdle) this.lostQueues.set(queue.id, queue);
  }

  markReleased(queue: WorkerQueue): void {
    this.markLost(queue);
    if (queue.wasClaimedAgain) this.lease(queue.id, queue.deliveries.tier);
  }

  /** @param requestedAt when the renewal was requested */
  markRenewed(requestedAt: number): void {
    this.renewedAt = requestedAt;
  }

  get isLeaseTrusted(): boolean {
    return performance.now() - this.renewedAt < TRUST_LEASE_MS;
  }

  private countByTier(): Record<Tier, number> {
    const counts = { fast: 0, slow: 0, probe: 0 };
    for (const { deliveries } of this.queues.values()) counts[deliveries.tier]++;
    return counts;
  }
}
