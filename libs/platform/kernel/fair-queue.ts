import { AsyncResource } from 'node:async_hooks';
import { OverloadError } from './errors.js';

type Options = {
  /** Maximum number of tasks that run at the same time. */
  concurrency: number;
  /** Maximum number of tasks of one owner that run at the same time, by how many more may start. Default: all. */
  getMaxRunning?: (freeCount: number) => number;
  /** Maximum number of waiting tasks of one owner. */
  maxWaiting: number;
  waitMs: number;
  now?: () => number;
};

type Release = () => void;
type OnStart = (error: OverloadError | undefined, release: Release) => void;
type GiveUp = () => void;
type Waiter = { start: () => void; timer: NodeJS.Timeout };

/**
 * Scheduling state in virtual time: when the owner began to wait, and until when they have been served.
 * @property latestMs duration of their latest task
 */
type Owner = {
  arrivedAt: number;
  servedUntil: number;
  latestMs: number;
  running: number;
  waiting: Waiter[];
};

/** Fixed cost of a task, so that tasks too short to measure are shared fairly as well. */
const TASK_COST_MS = 1;

/**
 * Shares time between owners by fair queueing (Demers, Keshav, Shenker 1989). The next task is the one that would end
 * first if all owners were served at once, estimating each task by its owner's latest. An occasional owner waits only
 * for the running task, however many others keep the queue busy.
 */
export class FairQueue {
  private running = 0;
  private waiting = 0;
  private virtualTime = 0;
  private readonly owners = new Map<string | number, Owner>();
  private readonly unowned: Waiter[] = [];
  private readonly now: () => number;

  constructor(private readonly options: Options) {
    this.now = options.now ?? (() => performance.now());
  }

  /** Number of tasks that wait. */
  get waitingCount(): number {
    return this.waiting;
  }

  /**
   * Runs a task in a slot of its owner.
   * @throws OverloadError when too many tasks of the owner wait, or this one has waited too long
   */
  run<R>(key: string | number, work: () => Promise<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      const execute = async (release: Release) => {
        try {
          resolve(await work());
        } catch (error) {
          reject(error);
        } finally {
          release();
        }
      };
      this.acquire(key, (error, release) => (error ? reject(error) : void execute(release)));
    });
  }

  /**
   * Starts a task in a slot of its owner: at once if possible.
   * @param key undefined for work of no owner, or of all: it goes first, and only `concurrency` limits it
   * @param onStart gets a function that ends the task, or why it was not started
   * @returns gives up waiting, if it still waits; `onStart` is then never called
   */
  acquire(key: string | number | undefined, onStart: OnStart): GiveUp {
    if (key === undefined) return this.acquireUnowned(onStart);
    const owner = this.getOwner(key);
    const startOwned = (run: OnStart) => {
      this.start(owner);
      const startedAt = this.now();
      run(undefined, () => this.end(key, owner, startedAt));
    };
    const isNext = owner.waiting.length === 0 && this.unowned.length === 0;
    if (isNext && this.mayStart(owner)) {
      startOwned(onStart);
      return ignore;
    }
    if (owner.waiting.length >= this.options.maxWaiting) {
      onStart(createOverloadError(), ignore);
      return ignore;
    }
    if (owner.waiting.length === 0) owner.arrivedAt = this.virtualTime;
    return this.wait(owner.waiting, startOwned, onStart);
  }

  private acquireUnowned(onStart: OnStart): GiveUp {
    const startUnowned = (run: OnStart) => {
      this.running++;
      run(undefined, () => {
        this.running--;
        this.startWaiting();
      });
    };
    if (this.running >= this.options.concurrency)
      return this.wait(this.unowned, startUnowned, onStart);
    startUnowned(onStart);
    return ignore;
  }

  private wait(waiting: Waiter[], start: (run: OnStart) => void, onStart: OnStart): GiveUp {
    // Whoever ends a task starts the next one, which belongs to another request.
    const context = new AsyncResource('wait');
    const run: OnStart = (...result) => context.runInAsyncScope(onStart, undefined, ...result);
    const giveUp = () => {
      const index = waiting.indexOf(waiter);
      if (index < 0) return;
      clearTimeout(waiter.timer);
      waiting.splice(index, 1);
      this.waiting--;
    };
    const timer = setTimeout(() => {
      giveUp();
      run(createOverloadError(), ignore);
    }, this.options.waitMs);
    const waiter = { start: () => start(run), timer };
    waiting.push(waiter);
    this.waiting++;
    return giveUp;
  }

  private getOwner(key: string | number): Owner {
    const existing = this.owners.get(key);
    if (existing) return existing;
    const owner: Owner = {
      arrivedAt: this.virtualTime,
      servedUntil: 0,
      latestMs: 0,
      running: 0,
      waiting: [],
    };
    this.owners.set(key, owner);
    return owner;
  }

  private mayStart({ running }: Owner): boolean {
    const { concurrency, getMaxRunning } = this.options;
    const freeCount = concurrency - this.running;
    return freeCount > 0 && (!getMaxRunning || running < getMaxRunning(freeCount));
  }

  private start(owner: Owner): void {
    this.virtualTime = getStartTag(owner);
    owner.servedUntil = this.virtualTime + TASK_COST_MS;
    owner.running++;
    this.running++;
  }

  private end(key: string | number, owner: Owner, startedAt: number): void {
    owner.latestMs = this.now() - startedAt;
    owner.servedUntil += owner.latestMs;
    owner.running--;
    this.running--;
    if (this.canBeRemoved(owner)) this.owners.delete(key);
    this.startWaiting();
  }

  /** Tells whether the owner neither does nor waits for anything, and has had no more than the others. */
  private canBeRemoved({ running, waiting, servedUntil }: Owner): boolean {
    return running === 0 && waiting.length === 0 && servedUntil <= this.virtualTime;
  }

  /** Starts what may start now: more than one task, if the end of one lets its owner have more again. */
  private startWaiting(): void {
    for (let next = this.takeNext(); next; next = this.takeNext()) {
      this.waiting--;
      clearTimeout(next.timer);
      next.start();
    }
    if (this.running > 0) return;
    // Nobody owes anything for having used what nobody else wanted.
    this.owners.clear();
    this.virtualTime = 0;
  }

  /** Takes the waiting task that would end first if all owners were served at once. */
  private takeNext(): Waiter | undefined {
    if (this.waiting === 0 || this.running >= this.options.concurrency) return undefined;
    const [unowned] = this.unowned.splice(0, 1);
    if (unowned) return unowned;
    let next: Owner | undefined;
    for (const [key, owner] of this.owners) {
      if (this.canBeRemoved(owner)) this.owners.delete(key);
      if (owner.waiting.length === 0 || !this.mayStart(owner)) continue;
      if (!next || getEndTag(owner) < getEndTag(next)) next = owner;
    }
    return next?.waiting.shift();
  }
}

function getStartTag({ arrivedAt, servedUntil }: Owner): number {
  return Math.max(arrivedAt, servedUntil);
}

function getEndTag(owner: Owner): number {
  return getStartTag(owner) + owner.latestMs;
}

function createOverloadError(): OverloadError {
  return new OverloadError('Too many requests of this kind are waiting');
}

function ignore(): void {
  // A task that was not started has nothing to end.
}
