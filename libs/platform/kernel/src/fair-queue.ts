import { UnavailableError } from './errors.js';

type Options = {
  /** How many run at once. */
  most: number;
  /** How many of one owner may wait. */
  mostWaiting: number;
  waitMs: number;
};

type Waiting = { begin: () => void; giveUp: NodeJS.Timeout };

/** Lets owners take turns, so that whoever wants the most delays only themselves. */
export class FairQueue {
  private running = 0;
  /** By owner, in the order of their turns. */
  private readonly waiting = new Map<string | number, Waiting[]>();

  constructor(private readonly options: Options) {}

  /** @throws UnavailableError when too many of the owner wait, or this one has waited for too long */
  async run<R>(owner: string | number, work: () => Promise<R>): Promise<R> {
    if (this.running < this.options.most) this.running++;
    else await this.turn(owner);
    try {
      return await work();
    } finally {
      this.passOn();
    }
  }

  /** Resolves when a place has been passed on. */
  private turn(owner: string | number): Promise<void> {
    const { mostWaiting, waitMs } = this.options;
    const own = this.waiting.get(owner) ?? [];
    if (own.length >= mostWaiting) throw new UnavailableError('Too many images are being made');
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => {
        this.leave(owner, waiting);
        reject(new UnavailableError('Too many images are being made'));
      }, waitMs);
      const waiting = { begin: resolve, giveUp };
      this.waiting.set(owner, [...own, waiting]);
    });
  }

  private passOn(): void {
    const [next] = this.waiting;
    if (!next) {
      this.running--;
      return;
    }
    const [owner, [first, ...rest]] = next;
    // Behind all the others from now on.
    this.waiting.delete(owner);
    if (rest.length > 0) this.waiting.set(owner, rest);
    if (!first) throw new Error('an owner waits for nothing');
    clearTimeout(first.giveUp);
    first.begin();
  }

  private leave(owner: string | number, waiting: Waiting): void {
    const others = this.waiting.get(owner)?.filter((one) => one !== waiting) ?? [];
    if (others.length > 0) this.waiting.set(owner, others);
    else this.waiting.delete(owner);
  }
}
