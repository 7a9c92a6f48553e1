import { UnavailableError } from '#platform/kernel/errors.js';
import {
  assertOutsideTransaction,
  findWait,
  runOutside,
  type DatabaseWait,
} from './database-waits.js';

const WATCH_INTERVAL_MS = 250;

/**
 * Limits of one batcher.
 * @property maxRunning maximum number of its batches at a time, where slots allow more
 * @property waitMs how long an item waits; after that it is rejected
 * @property alwaysRun with fewer items than this in progress, a batch needs no free slot
 * @property isElsewhere its batches do not wait for the database
 */
export type BatchLimits = {
  maxRunning?: number;
  alwaysRun?: number;
  waitMs?: number;
  isElsewhere?: boolean;
};

type WaitingItem<T, R> = {
  item: T;
  owner: string | number | undefined;
  /** The wait of its request, if its batches wait for the database. */
  wait: DatabaseWait | undefined;
  addedAt: number;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
};

/**
 * Processes a batch. Either returns one settled result per item, in order, or calls `end` with them, which takes no
 * promise.
 */
type Run<T, R> = (items: T[], end: End<R>) => Promise<PromiseSettledResult<R>[]> | undefined;
export type End<R> = (results: PromiseSettledResult<R>[]) => void;

/**
 * A batch in progress.
 * @property wake of its batcher
 * @property extraCount slots that there are because it is stuck
 */
type RunningBatch = {
  size: number;
  startedAt: number;
  wake: () => void;
  timer: NodeJS.Timeout | undefined;
  extraCount: number;
};

/** Limits how many batches run at a time, of one batcher or of several that share them. */
export class BatchSlots {
  private readonly running = new Set<RunningBatch>();
  private readonly queue: (() => void)[] = [];

  /**
   * @param getStuckMs duration after which a batch of a size may be blocked by somebody else: until it ends, there is
   *   one slot more
   */
  constructor(
    readonly count: number,
    private readonly getStuckMs: (size: number) => number = () => Infinity,
  ) {}

  get isFree(): boolean {
    let count = this.count;
    for (const { extraCount } of this.running) count += extraCount;
    return this.running.size < count;
  }

  /**
   * Registers a batcher.
   * @param wake called whenever a slot is free
   */
  onFree(wake: () => void): void {
    this.queue.push(wake);
  }

  /**
   * Takes a slot.
   * @param wake of the batcher that takes it: afterwards the others go first
   * @param size of the batch
   */
  acquire(wake: () => void, size: number): RunningBatch {
    const startedAt = performance.now();
    const batch: RunningBatch = { size, startedAt, wake, timer: undefined, extraCount: 0 };
    this.running.add(batch);
    return batch;
  }

  release(batch: RunningBatch): void {
    if (batch.timer) clearTimeout(batch.timer);
    this.running.delete(batch);
    if (this.queue.length > 1) {
      this.queue.splice(this.queue.indexOf(batch.wake), 1);
      this.queue.push(batch.wake);
    }
    for (const wake of this.queue) wake();
  }

  /** Watches for batches that are stuck, while an item waits. A timer for each batch would wake the process for each. */
  watch(): void {
    for (const batch of this.running) {
      const stuckMs = this.getStuckMs(batch.size);
      if (stuckMs === Infinity) continue;
      // A batch may have been stuck for long when the first item waits; Node.js warns about a negative time.
      const dueInMs = Math.max(0, batch.startedAt + stuckMs - performance.now());
      batch.timer ??= setTimeout(() => {
        batch.extraCount = 1;
        for (const wake of this.queue) wake();
      }, dueInMs);
    }
  }
}

/**
 * Batches items without a timer: an item is processed at once while a slot is free, and batches form while all are
 * busy. Items added in the same turn of the event loop share a batch.
 */
export class Batcher<T, R> {
  private waiting: WaitingItem<T, R>[] = [];
  private isScheduled = false;
  private runningCount = 0;
  private runningItemCount = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly slots: BatchSlots;

  constructor(
    slots: BatchSlots | number,
    private readonly groupSize: number,
    private readonly run: Run<T, R>,
    private readonly limits: BatchLimits = {},
  ) {
    this.slots = typeof slots === 'number' ? new BatchSlots(slots) : slots;
    this.slots.onFree(this.schedule);
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const current = findWait();
      const wait = this.limits.isElsewhere ? undefined : current;
      if (!this.limits.isElsewhere) assertOutsideTransaction();
      wait?.start();
      const addedAt = performance.now();
      this.waiting.push({ item, owner: current?.getOwner(), wait, addedAt, resolve, reject });
      this.schedule();
      if (this.limits.waitMs !== undefined && !this.timer) this.watch(this.limits.waitMs);
    });
  }

  /** Rejects items that have waited too long, oldest first. Checks only while items wait. */
  private watch(waitMs: number): void {
    this.timer = setInterval(() => {
      const deadline = performance.now() - waitMs;
      while (this.waiting[0] && this.waiting[0].addedAt < deadline) {
        const late = this.waiting.shift();
        if (late) rejectItem(late, new UnavailableError('The database is too busy'));
      }
      if (this.waiting.length > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    }, WATCH_INTERVAL_MS);
  }

  private readonly schedule = (): void => {
    if (this.isScheduled || this.waiting.length === 0) return;
    if (!this.canRun) {
      this.slots.watch();
      return;
    }
    this.isScheduled = true;
    // A batch belongs to several requests: each counts its own wait.
    setImmediate(runOutside, this.runGroups);
  };

  private readonly runGroups = (): void => {
    this.isScheduled = false;
    while (this.waiting.length > 0 && this.canRun) this.runGroup();
    if (this.waiting.length > 0) this.slots.watch();
  };

  private get canRun(): boolean {
    const { maxRunning = Infinity, alwaysRun = 0 } = this.limits;
    if (this.runningCount >= maxRunning) return false;
    return this.runningItemCount < alwaysRun || this.slots.isFree;
  }

  private runGroup(): void {
    const isLast = this.waiting.length <= this.groupSize;
    const group = isLast ? this.waiting.splice(0) : this.takeFairGroup();
    const batch = this.slots.acquire(this.schedule, group.length);
    this.runningCount++;
    this.runningItemCount += group.length;
    const end: End<R> = (results) => {
      let i = 0;
      for (const waiting of group) {
        const result = results[i++];
        if (result?.status === 'fulfilled') {
          waiting.wait?.end();
          waiting.resolve(result.value);
        } else if (result) rejectItem(waiting, result.reason);
        else rejectItem(waiting, new Error('a batch must have a result for every item'));
      }
      this.runningCount--;
      this.runningItemCount -= group.length;
      this.slots.release(batch);
    };
    const items: T[] = [];
    for (const { item } of group) items.push(item);
    this.run(items, end)?.then(end, (reason: unknown) =>
      end(items.map(() => ({ status: 'rejected', reason }))),
    );
  }

  /** Takes a group of those that do not all fit into it: of each owner as many items as of the others. */
  private takeFairGroup(): WaitingItem<T, R>[] {
    const counts = new Map<string | number | undefined, number>();
    const ranked = this.waiting.map((waiting) => {
      const rank = counts.get(waiting.owner) ?? 0;
      counts.set(waiting.owner, rank + 1);
      return { waiting, rank };
    });
    ranked.sort((a, b) => a.rank - b.rank);
    const group = ranked.slice(0, this.groupSize).map(({ waiting }) => waiting);
    const groupItems = new Set(group);
    this.waiting = this.waiting.filter((waiting) => !groupItems.has(waiting));
    return group;
  }
}

function rejectItem({ wait, reject }: WaitingItem<unknown, never>, error: unknown): void {
  wait?.end();
  reject(error);
}
