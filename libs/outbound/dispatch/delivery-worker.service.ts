import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { pause } from '#platform/kernel/pause.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { DATABASE_RETRY_MS } from '#platform/database/connection.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { WORK_CHANNEL, WorkHints } from '#outbound/subscriptions/work-hints.service.js';
import { DeliveryAttempts } from './delivery-attempts.service.js';
import { QueueLeases } from './queue-leases.service.js';
import { QueueLoader } from './queue-loader.service.js';
import type { Tier } from './delivery-queue.js';
import type { EnqueueRow } from './enqueue-statement.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryQueues, type LeasedQueue } from './delivery-queues.service.js';

const CLAIM_BATCH_SIZE = 32;
/** The most queues that one process owns; when more wait, the oldest are released to make room. */
const MAX_QUEUES = { total: 2_000, makeRoom: 64 };
/** Queues that become due sooner after their release wake the worker then. */
const WAKE_WITHIN_MS = 10_000;
/** How often a dispatcher that owns too many queues looks whether it has room again. */
const FULL_POLL_MS = 500;
/** What is due and was not claimed is usually being claimed by another dispatcher. */
const CLAIM_AGAIN_MS = 50;
const TICK_MS = 100;
const LINGER_MS = 1_000;
const MAX_VIEW_AGE_MS = 1_000;
const RENEW_INTERVAL_MS = 5_000;

/** Owns queues under a lease, for as long as there is work in them, and shares them with other dispatchers. */
@Injectable()
export class DeliveryWorker {
  private readonly log = new Logger('webhook deliveries');
  private readonly work = new WakeSignal();
  private renewSoon: () => void = () => undefined;

  constructor(
    private readonly queues: DeliveryQueues,
    private readonly leases: QueueLeases,
    private readonly loader: QueueLoader,
    private readonly attempts: DeliveryAttempts,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
    private readonly hints: WorkHints,
    private readonly session: ProcessSession,
    private readonly link: ProcessLink,
  ) {}

  /** Whether no other dispatcher needs to be told about new work. */
  get isAlone(): boolean {
    return this.session.peerCount === 0;
  }

  /**
   * Who may claim queues for this dispatcher without asking it; null: nobody, because the others are to get their share or
   * it owns enough.
   */
  get claimingDispatcherId(): number | null {
    const { isStopping, isLeaseTrusted, size } = this.queues;
    return this.isAlone && !isStopping && isLeaseTrusted && size < MAX_QUEUES.total
      ? this.leases.dispatcherId
      : null;
  }

  /**
   * Deliveries were enqueued for these subscriptions.
   * @param rows the queues that were claimed with it for this dispatcher, with what was read of them
   * @param since a moment before that, by `performance.now()`
   */
  handOver(rows: EnqueueRow[], subscriptionIds: number[], since: number): void {
    const claimed = new Map<number, Tier>();
    for (const { subscription_id: id, tier } of rows) if (id !== null) claimed.set(id, tier);
    const newCount = [...claimed.keys()].filter((id) => !this.queues.get(id)).length;
    this.metrics.countClaimed(newCount, 0);
    const read = rows.filter((row) => row.subscriptionId !== null);
    this.loader.lease(claimed, read, since);
    this.announce([...new Set(subscriptionIds)].filter((id) => !claimed.has(id)));
  }

  /** Tells this dispatcher, and the others if there are any, that these subscriptions may have work. */
  announce(subscriptionIds: readonly number[]): void {
    if (subscriptionIds.length === 0) return;
    this.wake(new Set(subscriptionIds));
    if (!this.isAlone) this.hints.wake();
  }

  /** These subscriptions may have work, some of them in queues that this process already owns. */
  wake(subscriptionIds: Iterable<number>): void {
    for (const id of subscriptionIds) {
      const queue = this.queues.get(id);
      if (queue) this.queues.requestRefill(queue);
      else this.work.wake();
    }
  }

  /** Runs until the signal aborts; call `finish` for what is in flight then. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => (this.queues.isStopping = true), { once: true });
    this.session.onHeld(() => this.renewSoon());
    this.leases.onDue(() => this.work.wake());
    const endHints = this.link.listen(WORK_CHANNEL, (payload) => this.onHint(payload));
    try {
      await Promise.all([this.claimLoop(signal), this.renewLoop(signal), this.tickLoop(signal)]);
    } finally {
      endHints();
    }
  }

  /**
   * Waits for what is in flight, and releases queues as they become idle.
   * @returns how many attempts were left unfinished; they will be made again
   */
  async finish(milliseconds: number): Promise<number> {
    this.queues.isStopping = true;
    const deadline = performance.now() + milliseconds;
    await this.loader.finish();
    for (;;) {
      for (const queue of this.queues.all) {
        if (queue.waitingCount > 0) queue.interrupt('draining');
      }
      const idle = [...this.queues.all].filter(({ isIdle }) => isIdle);
      const isLate = performance.now() > deadline;
      try {
        await this.release(isLate ? [...this.queues.all] : idle);
      } catch (error) {
        this.log.warn(`queues could not be released at the stop: ${getErrorMessage(error)}`);
        await wait(Math.min(DATABASE_RETRY_MS, milliseconds));
      }
      if (this.queues.size === 0 || isLate) break;
      await wait(20);
    }
    return this.queues.slots.inFlight;
  }

  /** The payload names one subscription, or is empty for any. */
  private onHint(payload: string): void {
    if (payload !== '') this.wake([Number(payload)]);
    else {
      this.wake(this.queues.ids);
      this.work.wake();
    }
  }

  private async claimLoop(signal: AbortSignal): Promise<void> {
    const failures = new FailureLog(this.log);
    while (!signal.aborted) {
      try {
        const claimed = await this.stalls.watch(() => this.claim());
        failures.succeed();
        if (!claimed) await this.waitForWork(signal);
      } catch (error) {
        failures.fail(`queues could not be claimed: ${getErrorMessage(error)}`);
        await wait(DATABASE_RETRY_MS);
      }
    }
  }

  private async claim(): Promise<boolean> {
    if (!this.queues.isLeaseTrusted) return false;
    if (this.queues.size >= MAX_QUEUES.total) {
      let room = MAX_QUEUES.makeRoom;
      for (const queue of this.queues.all) if (room-- > 0) queue.interrupt('draining');
      return false;
    }
    const claimed = await this.leases.claim(CLAIM_BATCH_SIZE);
    this.loader.lease(claimed);
    return claimed.size > 0;
  }

  private async waitForWork(signal: AbortSignal): Promise<void> {
    const due = await this.leases.findMsToNext();
    const pollMs = this.queues.size < MAX_QUEUES.total ? drawPollMs() : FULL_POLL_MS;
    const dueMs = due === undefined ? pollMs : Math.max(due + 1, CLAIM_AGAIN_MS);
    await this.work.wait(Math.min(pollMs, Math.ceil(dueMs)), signal);
  }

  private async tickLoop(signal: AbortSignal): Promise<void> {
    const { queues } = this;
    while (!signal.aborted) {
      if (queues.size + queues.slots.inFlight === 0)
        await queues.leaseSignal.wait(Infinity, signal);
      await pause(TICK_MS, signal);
      if (!signal.aborted) this.tick();
    }
  }

  private tick(): void {
    const now = performance.now();
    this.attempts.measure(now);
    if (this.queues.isStopping) return;
    const released = [...this.queues.all].filter((queue) => this.checkQueue(queue, now));
    this.attempts.dispatchNext();
    if (released.length > 0) {
      this.release(released).catch((error: unknown) =>
        this.log.warn(`queues could not be released: ${getErrorMessage(error)}`),
      );
    }
  }

  /** @returns whether the queue is to be released */
  private checkQueue(queue: LeasedQueue, now: number): boolean {
    if (queue.nextDueAt <= now) {
      queue.nextDueAt = Infinity;
      this.queues.requestRefill(queue);
      return false;
    }
    if (queue.waitingCount === 0) return this.queues.canBeReleased(queue, now, LINGER_MS);
    if (queue.isViewStale(now, MAX_VIEW_AGE_MS)) this.queues.requestRefill(queue);
    this.queues.markReady(queue);
    return false;
  }

  private async release(queues: LeasedQueue[]): Promise<void> {
    if (queues.length === 0) return;
    for (const queue of queues) queue.operation = 'releasing';
    const reclaimed: LeasedQueue[] = [];
    let released = new Map<number, number>();
    try {
      released = await this.leases.release(queues);
    } finally {
      for (const queue of queues) {
        if (queue.operation === 'reclaimed') reclaimed.push(queue);
        queue.operation = undefined;
        if (released.has(queue.id)) this.queues.markLost(queue);
        else this.queues.requestRefill(queue);
      }
    }
    this.loader.lease(
      reclaimed.flatMap(({ id, tier }): [number, Tier][] => (released.has(id) ? [[id, tier]] : [])),
    );
    const dueInMs = Math.min(...released.values());
    if (dueInMs < WAKE_WITHIN_MS) this.work.wakeIn(dueInMs);
    if (!this.queues.isStopping) return;
    // Nothing is loaded any more, but what was added meanwhile has to be known.
    for (const queue of queues) if (!released.has(queue.id)) await this.loader.view(queue);
  }

  private async renewLoop(signal: AbortSignal): Promise<void> {
    const failures = new FailureLog(this.log);
    while (!signal.aborted) {
      let delayMs = RENEW_INTERVAL_MS;
      const waking = new AbortController();
      this.renewSoon = () => waking.abort();
      try {
        const wasTrusted = this.queues.isLeaseTrusted;
        const requestedAt = performance.now();
        const renewed = await this.stalls.watch(() => this.leases.renew());
        // These were claimed by a statement whose result was lost: nobody else would notice.
        for (const id of renewed) if (!this.queues.get(id)) this.loader.lease([[id, 'fast']]);
        // Before the others may send again: what somebody else has taken must not be sent with them.
        for (const queue of this.queues.all) {
          if (renewed.has(queue.id)) continue;
          queue.interrupt('uncertain');
          this.queues.requestRefill(queue);
        }
        this.queues.markRenewed(requestedAt);
        if (!wasTrusted) this.work.wake();
        await this.shareQueues();
        failures.succeed();
      } catch (error) {
        failures.fail(`leases could not be renewed: ${getErrorMessage(error)}`);
        delayMs = DATABASE_RETRY_MS;
      }
      await pause(delayMs, AbortSignal.any([signal, waking.signal]));
    }
  }

  /** Releases what is well above this dispatcher's share of the queues while others are running. */
  private async shareQueues(): Promise<void> {
    const { peerCount: otherCount } = this.session;
    if (otherCount === 0) return;
    const leasedCount = await this.leases.countLeased();
    const share = Math.ceil(leasedCount / (otherCount + 1));
    let surplus = this.queues.size - share - Math.ceil(share / 8) - 1;
    for (const queue of this.queues.all) {
      if (surplus-- <= 0) break;
      queue.interrupt('draining');
    }
  }
}
