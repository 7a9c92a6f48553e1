import { Injectable } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { AttemptSlots } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryQueue, type Tier } from './delivery-queue.js';

/** Deliveries kept in memory: in all, of one queue at most, and of each queue at least, even beyond the total. */
const MAX_LOADED = { total: 8_192, perQueue: 64, minPerQueue: 4 };
/**
 * A lease lasts 30 s from its last renewal; in the last seconds nothing new is sent. Nor is it once the process has lost
 * its session, until the leases are renewed in the next one: others may take them for those of a dead process.
 */
const TRUST_LEASE_MS = 25_000;

export type LeasedQueue = DeliveryQueue<Delivery>;

/** Holds the queues that this process leases (ADR-0017), shared by the services that lease, load and send. */
@Injectable()
export class DeliveryQueues {
  readonly slots = new AttemptSlots();
  /** Queues that may have something to send, in rotation. */
  private readonly readyQueues: Record<Tier, LeasedQueue[]> = { fast: [], slow: [], probe: [] };
  isStopping = false;
  /** Woken when this process leases a queue. */
  readonly leaseSignal = new WakeSignal();
  private readonly queues = new Map<number, LeasedQueue>();
  /** Queues lost with attempts in flight: if one is claimed again, those must not be made twice. */
  private readonly lostQueues = new Map<number, LeasedQueue>();
  /** Queues that wait to be loaded. */
  private readonly needingRefill = new Set<LeasedQueue>();
  private renewedAt = -Infinity;
  private startLoading: () => void = () => undefined;

  constructor(
    metrics: DeliveryMetrics,
    private readonly session: ProcessSession,
  ) {
    metrics.watch({
      queues: () => this.countByTier(),
      inFlight: () => this.slots.usedByTier,
      waiting: () => this.countWaiting(),
      unrecorded: () => this.slots.unrecorded,
    });
  }

  get size(): number {
    return this.queues.size;
  }

  get ids(): Iterable<number> {
    return this.queues.keys();
  }

  get all(): Iterable<LeasedQueue> {
    return this.queues.values();
  }

  get(id: number): LeasedQueue | undefined {
    return this.queues.get(id);
  }

  /** Adds a queue that this process has leased, unless it has it already. */
  lease(id: number, tier: Tier): LeasedQueue {
    let queue = this.queues.get(id);
    if (!queue) {
      queue = new DeliveryQueue(id, tier, performance.now(), this.lostQueues.get(id));
      this.queues.set(id, queue);
      this.leaseSignal.wake();
    }
    // It may have been claimed right after its release, whose result comes later than that of the claim.
    else if (queue.operation === 'releasing') queue.operation = 'reclaimed';
    return queue;
  }

  /** Registers the loader. @param start called synchronously whenever a queue requests a refill */
  onRefillNeeded(start: () => void): void {
    this.startLoading = start;
  }

  requestRefill(queue: LeasedQueue): void {
    if (queue.state === 'lost' || this.isStopping) return;
    this.needingRefill.add(queue);
    this.startLoading();
  }

  /** Takes queues that wait to be loaded; those about which a statement is running go on waiting. */
  takeNeedingRefill(limit: number): LeasedQueue[] {
    const batch: LeasedQueue[] = [];
    for (const queue of this.needingRefill) {
      if (batch.length === limit) break;
      if (queue.operation !== undefined) continue;
      this.needingRefill.delete(queue);
      batch.push(queue);
    }
    return batch;
  }

  /** How many deliveries of one queue may be in memory. */
  get roomPerQueue(): number {
    const share = Math.floor(MAX_LOADED.total / Math.max(1, this.queues.size));
    return Math.max(MAX_LOADED.minPerQueue, Math.min(MAX_LOADED.perQueue, share));
  }

  /** How many held deliveries one query may have to skip. */
  readonly maxHeld = 2 * MAX_LOADED.perQueue;

  markReady(queue: LeasedQueue): void {
    if (queue.waitingCount === 0 || queue.isReady) return;
    queue.isReady = true;
    this.readyQueues[queue.tier].push(queue);
  }

  /** Takes the next ready queue; `markReady` adds it again, after the others. */
  takeReady(tier: Tier): LeasedQueue | undefined {
    const queue = this.readyQueues[tier].shift();
    if (queue) queue.isReady = false;
    return queue;
  }

  /** Reads all of it again before anything of it is sent. */
  startOver(queue: LeasedQueue): void {
    // It may have been lost and claimed again meanwhile.
    const current = this.queues.get(queue.id) ?? queue;
    current.interrupt('rereading');
    this.requestRefill(current);
  }

  remove(queue: LeasedQueue, delivery: Delivery): void {
    queue.remove(delivery, performance.now());
    // The queue may have been claimed again meanwhile, and lost once more.
    this.queues.get(queue.id)?.removeInherited(delivery);
    const lost = this.lostQueues.get(queue.id);
    lost?.removeInherited(delivery);
    if (lost?.hasUnrecorded === false) this.lostQueues.delete(queue.id);
  }

  markLost(queue: LeasedQueue): void {
    queue.interrupt('lost');
    this.needingRefill.delete(queue);
    if (this.queues.get(queue.id) === queue) this.queues.delete(queue.id);
    if (queue.hasUnrecorded) this.lostQueues.set(queue.id, queue);
  }

  /** @param requestedAt when the renewal was requested */
  markRenewed(requestedAt: number): void {
    this.renewedAt = requestedAt;
  }

  get isLeaseTrusted(): boolean {
    const { renewedAt } = this;
    return this.session.isHeldSince(renewedAt) && performance.now() - renewedAt < TRUST_LEASE_MS;
  }

  /** @param lingerMs how long a queue is kept after it has become empty */
  canBeReleased(queue: LeasedQueue, now: number, lingerMs: number): boolean {
    return queue.canBeReleased(now, lingerMs, this.needingRefill.has(queue));
  }

  private countWaiting(): number {
    let count = 0;
    for (const { waitingCount } of this.queues.values()) count += waitingCount;
    return count;
  }

  private countByTier(): Record<Tier, number> {
    const counts = { fast: 0, slow: 0, probe: 0 };
    for (const { tier } of this.queues.values()) counts[tier]++;
    return counts;
  }
}
