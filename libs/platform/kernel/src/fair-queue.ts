import { UnavailableError } from './errors.js';

type Options = {
  /** How many run at once. */
  concurrency: number;
  /** How many of one owner may wait. */
  maxWaiting: number;
  waitMs: number;
  now?: () => number;
};

type Waiter = { start: () => void; giveUp: NodeJS.Timeout };

/**
 * In virtual time: when the owner began to wait, and until when they have been served.
 * @property turnMs how long their latest turn took
 */
type Owner = {
  arrivedAt: number;
  servedUntil: number;
  turnMs: number;
  running: number;
  waiting: Waiter[];
};

/** What a turn costs besides its time, so that turns too short to be measured are shared out as well. */
const TURN_COST_MS = 1;

/**
 * Shares time between owners by fair queueing (Demers, Keshav, Shenker 1989): the next turn is the one that would end
 * first if all owners were served at once, each turn taken to be as long as its owner's latest. Somebody who comes now
 * and then waits for the one that runs, and not for those who keep the queue busy, however many they are and however long
 * their turns take.
 */
export class FairQueue {
  private running = 0;
  private virtualTime = 0;
  private readonly owners = new Map<string | number, Owner>();
  private readonly now: () => number;

  constructor(private readonly options: Options) {
    this.now = options.now ?? (() => performance.now());
  }

  /** @throws UnavailableError when too many of the owner wait, or this one has waited for too long */
  async run<R>(key: string | number, work: () => Promise<R>): Promise<R> {
    const owner = this.getOwner(key);
    if (this.running < this.options.concurrency) this.start(owner);
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

  private start(owner: Owner): void {
    this.virtualTime = getStartTag(owner);
    owner.servedUntil = this.virtualTime + TURN_COST_MS;
    owner.running++;
    this.running++;
  }

  /** Resolves when the turn has begun. */
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
  return new UnavailableError('Too many images are being made');
}
