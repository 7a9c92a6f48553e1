import { UnavailableError } from '#kernel/errors.js';

const WATCH_EVERY_MS = 250;

/**
 * Of one batcher.
 * @property most how many of its batches may be under way at once, where lanes allow more
 * @property waitMs how long an item waits for its turn, which it then loses for good
 * @property few while fewer items than that are under way, a batch needs no free lane
 */
type Limits = { most?: number; few?: number; waitMs?: number };

type Waiting<T, R> = {
  item: T;
  since: number;
  resolve: (result: R) => void;
  reject: (error: unknown) => void;
};

/** How many batches may be under way at once, of one batcher or of several that take turns. */
export class Lanes {
  busy = 0;
  private stuck = 0;
  private readonly queue: (() => void)[] = [];

  /**
   * @param stuckMs after which a batch of that size may be waiting for somebody else: from then on, until it ends, there
   *   is one lane more
   */
  constructor(
    readonly count: number,
    private readonly stuckMs?: (size: number) => number,
  ) {}

  get isFree(): boolean {
    return this.busy < this.count + this.stuck;
  }

  /** @param wake called whenever a lane is free */
  share(wake: () => void): void {
    this.queue.push(wake);
  }

  /**
   * @param own of the batcher that takes the lane: afterwards the others go first
   * @param size of the batch
   * @returns gives it back
   */
  take(own: () => void, size: number): () => void {
    this.busy++;
    let stuck = 0;
    const late = () => {
      stuck = 1;
      this.stuck++;
      this.wakeAll();
    };
    const timer = this.stuckMs && setTimeout(late, this.stuckMs(size));
    return () => {
      clearTimeout(timer);
      this.stuck -= stuck;
      this.busy--;
      this.queue.splice(this.queue.indexOf(own), 1);
      this.queue.push(own);
      this.wakeAll();
    };
  }

  private wakeAll(): void {
    for (const wake of this.queue) wake();
  }
}

/**
 * Batches items without a timer: an item goes out at once while a worker is free, and batches form while all
 * are busy. Items added in the same turn of the event loop share a batch.
 */
export class Batcher<T, R> {
  private waiting: Waiting<T, R>[] = [];
  private scheduled = false;
  private running = 0;
  private underWay = 0;
  private watching: NodeJS.Timeout | undefined;
  private readonly lanes: Lanes;
  private readonly wake = () => this.schedule();

  /** @param run processes a batch and returns one settled result per item, in order */
  constructor(
    lanes: Lanes | number,
    private readonly groupSize: number,
    private readonly run: (items: T[]) => Promise<PromiseSettledResult<R>[]>,
    private readonly limits: Limits = {},
  ) {
    this.lanes = typeof lanes === 'number' ? new Lanes(lanes) : lanes;
    this.lanes.share(this.wake);
  }

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, since: performance.now(), resolve, reject });
      this.schedule();
      this.watch();
    });
  }

  /** Rejects what has waited too long, oldest first; looks only while something waits. */
  private watch(): void {
    const { waitMs } = this.limits;
    if (waitMs === undefined || this.watching) return;
    this.watching = setInterval(() => {
      const late = performance.now() - waitMs;
      while (this.waiting[0] && this.waiting[0].since < late) {
        this.waiting.shift()?.reject(new UnavailableError('The database is too busy'));
      }
      if (this.waiting.length > 0) return;
      clearInterval(this.watching);
      this.watching = undefined;
    }, WATCH_EVERY_MS);
  }

  private schedule(): void {
    if (this.scheduled || !this.mayRun) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      while (this.mayRun) {
        void this.runGroup(this.waiting.splice(0, this.groupSize));
      }
    });
  }

  private get mayRun(): boolean {
    const { most = Infinity, few = 0 } = this.limits;
    if (this.waiting.length === 0 || this.running >= most) return false;
    return this.underWay < few || this.lanes.isFree;
  }

  private async runGroup(group: Waiting<T, R>[]): Promise<void> {
    const giveBack = this.lanes.take(this.wake, group.length);
    this.running++;
    this.underWay += group.length;
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
      this.running--;
      this.underWay -= group.length;
      giveBack();
    }
  }
}
