import { UnavailableError } from './errors.js';

type Options = {
  /** Maximum number of tasks that run at the same time. */
  concurrency: number;
  /** Maximum number of tasks of one owner that run at the same time. Default: `concurrency`. */
  maxRunning?: number;
  /** Maximum number of waiting tasks of one owner. */
  maxWaiting: number;
  waitMs: number;
  now?: () => number;
};

type Waiter = { start: () => void; giveUp: NodeJS.Timeout };

/**
 * Scheduling state in virtual time: when the owner began to wait, and until when they have been served.
 * @property turnMs duration of their latest task
 */
type Owner = {
  arrivedAt: number;
  servedUntil: number;
  turnMs: number;
  running: number;
  waiting: Waiter[];
};

/** Fixed cost of a task, so that tasks too short to measure are shared fairly as well. */
const TURN_COST_MS = 1;

/**
 * Shares time between owners by fair queueing (Demers, Keshav, Shenker 1989). The next task is the one that would end
 * first if all owners were served at once, estimating each task by its owner's latest. An occasional owner waits only
 * for the running task, however many others keep the queue busy.
 */
export class FairQueue {
  private running = 0;
  private virtualTime = 0;
  private readonly owners = new Map<string | number, Owner>();
  private readonly now: () => number;

  constructor(private readonly options: Options) {
    this.now = options.now ?? (() => performance.now());
  }

  /**
   * Runs a task in its owner's turn.
   * @throws UnavailableError when too many tasks of the owner wait, or this one has waited too long
   */
  async run<R>(key: string | number, work: () => Promise<R>): Promise<R> {
    const owner = this.getOwner(key);
    if (this.running < this.options.concurrency && this.mayStart(owner)) this.start(owner);
    else await this.wait(owner);
    const startedAt = this.now();
    try {
      return await work();
    } finally {
      owner.turnMs = this.now() - startedAt;
      owner.servedUntil += owner.turnMs;
      owner.running--;
      this.running--;
      this.startNext();
    }
  }

  private getOwner(key: string | number): Owner {
    const existing = this.owners.get(key);
    if (existing) return existing;
    const owner: Owner = {
      arrivedAt: this.virtualTime,
      servedUntil: 0,
      turnMs: 0,
      running: 0,
      waiting: [],
    };
    this.owners.set(key, owner);
    return owner;
  }

  private mayStart({ running }: Owner): boolean {
    return running < (this.options.maxRunning ?? this.options.concurrency);
  }

  private start(owner: Owner): void {
    this.virtualTime = getStartTag(owner);
    owner.servedUntil = this.virtualTime + TURN_COST_MS;
    owner.running++;
    this.running++;
  }

  /** Resolves when the task may start. */
  private wait(owner: Owner): Promise<void> {
    const { maxWaiting, waitMs } = this.options;
    if (owner.waiting.length >= maxWaiting) throw createOverloadError();
    if (owner.waiting.length === 0) owner.arrivedAt = this.virtualTime;
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => {
        owner.waiting = owner.waiting.filter((one) => one !== waiting);
        reject(createOverloadError());
      }, waitMs);
      const waiting = { start: resolve, giveUp };
      owner.waiting.push(waiting);
    });
  }

  private startNext(): void {
    let next: Owner | undefined;
    for (const [key, owner] of this.owners) {
      if (owner.waiting.length > 0) {
        if (!this.mayStart(owner)) continue;
        if (!next || getEndTag(owner) < getEndTag(next)) next = owner;
      } else if (owner.running === 0 && owner.servedUntil <= this.virtualTime) {
        this.owners.delete(key);
      }
    }
    const first = next?.waiting.shift();
    if (next && first) {
      clearTimeout(first.giveUp);
      this.start(next);
      first.start();
    } else if (this.running === 0) {
      // Nobody owes anything for having used what nobody else wanted.
      this.owners.clear();
      this.virtualTime = 0;
    }
  }
}

function getStartTag({ arrivedAt, servedUntil }: Owner): number {
  return Math.max(arrivedAt, servedUntil);
}

function getEndTag(owner: Owner): number {
  return getStartTag(owner) + owner.turnMs;
}

function createOverloadError(): UnavailableError {
  return new UnavailableError('Too many requests of this kind are waiting');
}
