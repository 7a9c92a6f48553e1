const BATCH_SIZE = 64;
/**
 * A command that has not had its turn by then is refused, with nothing written, so that its caller gets a response
 * within 8 s.
 */
export const TURN_WITHIN_MS = 6_500;
const WATCH_EVERY_MS = 250;

/** Keeps a stream from all other work of this process until `released`. */
type Hold = { granted: () => void; released: Promise<void> };

/**
 * The result of a turn.
 * @property isRaceLost whether a race was lost, after which the next turn waits a little
 */
export type Turn<P> = { retry: P[]; isRaceLost: boolean };

/**
 * Queues work for each stream in order of arrival: single commands, which run together, and exclusive work on several
 * streams.
 */
export class StreamQueues<P extends object> {
  private readonly queues = new Map<string, (P | Hold)[]>();
  private watching: NodeJS.Timeout | undefined;

  constructor(
    /** @param losses how many races in a row the stream has just lost */
    private readonly takeTurn: (stream: string, batch: P[], losses: number) => Promise<Turn<P>>,
    private readonly giveUp: {
      isLate: (waiting: P) => boolean;
      refuse: (waiting: P) => void;
    } = { isLate: () => false, refuse: () => undefined },
  ) {}

  /** Returns the number of streams with running or waiting work. */
  get size(): number {
    return this.queues.size;
  }

  add(stream: string, waiting: P | Hold): void {
    const queue = this.queues.get(stream);
    if (queue) {
      queue.push(waiting);
      this.watching ??= setInterval(() => this.refuseLate(), WATCH_EVERY_MS);
    } else {
      const fresh = [waiting];
      this.queues.set(stream, fresh);
      void this.drain(stream, fresh);
    }
  }

  /** Refuses commands that wait too long. Stops the timer when none waits. */
  private refuseLate(): void {
    let isEmpty = true;
    for (const queue of this.queues.values()) {
      for (let i = queue.length - 1; i >= 0; i--) {
        const waiting = queue[i];
        if (!waiting || isHold(waiting) || !this.giveUp.isLate(waiting)) continue;
        queue.splice(i, 1);
        this.giveUp.refuse(waiting);
      }
      if (queue.length > 0) isEmpty = false;
    }
    if (!isEmpty) return;
    clearInterval(this.watching);
    this.watching = undefined;
  }

  /**
   * Runs work while nothing else of this process writes these streams. Takes them in the order of their names, so that
   * two such calls cannot deadlock; single commands hold one stream and wait for none.
   */
  async runExclusively<R>(streams: string[], work: () => Promise<R>): Promise<R> {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    try {
      for (const stream of [...new Set(streams)].sort()) {
        await new Promise<void>((granted) => this.add(stream, { granted, released }));
      }
      return await work();
    } finally {
      release();
    }
  }

  private async drain(stream: string, queue: (P | Hold)[]): Promise<void> {
    for (let losses = 0; queue.length > 0;) {
      const [next] = queue;
      if (next && isHold(next)) {
        queue.shift();
        next.granted();
        await next.released;
        continue;
      }
      const { retry, isRaceLost } = await this.takeTurn(stream, nextBatch(queue), losses);
      losses = isRaceLost ? losses + 1 : 0;
      queue.unshift(...retry);
      if (losses > 0) await backOff(losses);
    }
    this.queues.delete(stream);
  }
}

function nextBatch<P extends object>(queue: (P | Hold)[]): P[] {
  const batch: P[] = [];
  for (let [next] = queue; next && !isHold(next) && batch.length < BATCH_SIZE; [next] = queue) {
    batch.push(next);
    queue.shift();
  }
  return batch;
}

function isHold<P extends object>(waiting: P | Hold): waiting is Hold {
  return 'granted' in waiting;
}

/**
 * Waits after lost races, with full jitter: processes that compete for one stream must not meet again at the same
 * moment.
 */
export function backOff(losses: number): Promise<void> {
  const ceiling = Math.min(2 ** losses, 100);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * ceiling));
}
