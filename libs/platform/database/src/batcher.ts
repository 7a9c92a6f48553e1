import { UnavailableError } from '#kernel/errors.js';
import { addToWait, findWait, runWithWait } from './database-waits.js';

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
  addedAt: number;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
};

/** A batch in progress. @property extraCount slots that there are because it is stuck */
type RunningBatch = { stuckAt: number; timer: NodeJS.Timeout | undefined; extraCount: number };

/** Limits how many batches run at a time, of one batcher or of several that take turns. */
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
   * @returns releases the slot
   */
  acquire(wake: () => void, size: number): () => void {
    const stuckAt = performance.now() + this.getStuckMs(size);
    const batch: RunningBatch = { stuckAt, timer: undefined, extraCount: 0 };
    this.running.add(batch);
    return () => {
      clearTimeout(batch.timer);
      this.running.delete(batch);
      this.queue.splice(this.queue.indexOf(wake), 1);
      this.queue.push(wake);
      this.wakeAll();
    };
  }

  /** Watches for batches that are stuck, while an item waits. A timer for each batch would wake the process for each. */
  watch(): void {
    for (const batch of this.running) {
      if (batch.stuckAt === Infinity) continue;
      // A batch may have been stuck for long when the first item waits; Node.js warns about a negative time.
      const dueInMs = Math.max(0, batch.stuckAt - performance.now());
      batch.timer ??= setTimeout(() => {
        batch.extraCount = 1;
        this.wakeAll();
      }, dueInMs);
    }
  }

  private wakeAll(): void {
    for (const wake of this.queue) wake();
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
  private readonly wake = () => this.schedule();

  /** @param run processes a batch and returns one settled result per item, in order */
  constructor(
    slots: BatchSlots | number,
    private readonly groupSize: number,
    private readonly run: (items: T[]) => Promise<PromiseSettledResult<R>[]>,
    private readonly limits: BatchLimits = {},
  ) {
    this.slots = typeof slots === 'number' ? new BatchSlots(slots) : slots;
    this.slots.onFree(this.wake);
  }

  add(item: T): Promise<R> {
    const result = new Promise<R>((resolve, reject) => {
      const owner = findWait()?.owner;
      this.waiting.push({ item, owner, addedAt: performance.now(), resolve, reject });
      // A batch belongs to several requests: each counts its wait below.
      runWithWait(undefined, () => {
        this.schedule();
        this.watch();
      });
    });
    return this.limits.isElsewhere ? result : addToWait(result);
  }

  /** Rejects items that have waited too long, oldest first. Checks only while items wait. */
  private watch(): void {
    const { waitMs } = this.limits;
    if (waitMs === undefined || this.timer) return;
    this.timer = setInterval(() => {
      const deadline = performance.now() - waitMs;
      while (this.waiting[0] && this.waiting[0].addedAt < deadline) {
        this.waiting.shift()?.reject(new UnavailableError('The database is too busy'));
      }
      if (this.waiting.length > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    }, WATCH_INTERVAL_MS);
  }

  private schedule(): void {
    if (this.isScheduled || this.waiting.length === 0) return;
    if (!this.canRun) {
      this.slots.watch();
      return;
    }
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      while (this.canRun) {
        void this.runGroup(this.takeGroup());
      }
      if (this.waiting.length > 0) this.slots.watch();
    });
  }

  /** Takes the next group: of each owner as many items as of the others, when not all fit into it. */
  private takeGroup(): WaitingItem<T, R>[] {
    if (this.waiting.length <= this.groupSize) return this.waiting.splice(0);
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

  private get canRun(): boolean {
    const { maxRunning = Infinity, alwaysRun = 0 } = this.limits;
    if (this.waiting.length === 0 || this.runningCount >= maxRunning) return false;
    return this.runningItemCount < alwaysRun || this.slots.isFree;
  }

  private async runGroup(group: WaitingItem<T, R>[]): Promise<void> {
    const release = this.slots.acquire(this.wake, group.length);
    this.runningCount++;
    this.runningItemCount += group.length;
    try {
      const results = await this.run(group.map((waiting) => waiting.item));
      group.forEach((waiting, i) => {
        const result = results[i];
        if (result === undefined)
          waiting.reject(new Error('a batch must have a result for every item'));
        else if (result.status === 'fulfilled') waiting.resolve(result.value);
        else waiting.reject(result.reason);
      });
    } catch (error) {
      for (const waiting of group) waiting.reject(error);
    } finally {
      this.runningCount--;
      this.runningItemCount -= group.length;
      release();
    }
  }
}
