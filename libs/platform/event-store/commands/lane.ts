import { UnavailableError } from '#platform/kernel/errors.js';

const BATCH_SIZE = 64;
/**
 * Work that has not begun by then is refused, with nothing written, so that its caller gets a response within 8 s.
 */
export const START_WITHIN_MS = 6_500;
/** Work that has lost a race is repeated for so long. */
export const RETRY_WITHIN_MS = 10_000;
const WATCH_EVERY_MS = 250;

/** Work that waits. @property since by `performance.now()` */
export type Waiting = { since: number; reject: (error: unknown) => void };

/** Keeps a name from all other work until `released`. @property isRetry an earlier try lost a race */
type Hold = Waiting & { isRetry: boolean; grant: () => void; released: Promise<void> };

type Options<P> = {
  /** Runs a batch, and calls `startNext` or `retry` at its end. @property losses how many races were lost in a row */
  run?: (name: string, batch: P[], losses: number) => void;
  describeOverload?: () => string;
  startWithinMs?: number;
};

/**
 * Orders the work of this process on a stream or a cap by arrival, one after another for each name: single commands,
 * which run together, and exclusive work, which may be on several names.
 */
export class Lanes<P extends Waiting> {
  private readonly lanes = new Map<string, (P | Hold)[]>();
  private readonly options: Required<Options<P>>;
  private watching: NodeJS.Timeout | undefined;

  constructor(options: Options<P> = {}) {
    this.options = {
      run: () => undefined,
      describeOverload: () => 'The database is too busy',
      startWithinMs: START_WITHIN_MS,
      ...options,
    };
  }

  /** Returns the number of names with running or waiting work. */
  get size(): number {
    return this.lanes.size;
  }

  add(name: string, waiting: P | Hold): void {
    const lane = this.lanes.get(name);
    if (lane) {
      lane.push(waiting);
      this.watching ??= setInterval(() => this.refuseLate(), WATCH_EVERY_MS);
    } else {
      this.lanes.set(name, [waiting]);
      this.startNext(name);
    }
  }

  /**
   * Runs work while nothing else of this process has these names. Takes them in their order, so that two such calls
   * cannot deadlock; single commands hold one name and wait for none.
   * @param options.since when its first try began to wait
   * @throws UnavailableError when it cannot begin in time; it never does then
   */
  async runExclusively<R>(
    names: string[],
    work: () => Promise<R>,
    { since = performance.now(), isRetry = false } = {},
  ): Promise<R> {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    try {
      for (const name of [...new Set(names)].sort()) {
        await new Promise<void>((grant, reject) => {
          this.add(name, { since, isRetry, reject, grant, released });
        });
      }
      return await work();
    } finally {
      release();
    }
  }

  /** Starts what waits next. */
  startNext(name: string, losses = 0): void {
    const lane = this.lanes.get(name) ?? [];
    const [next] = lane;
    if (!next) {
      this.lanes.delete(name);
    } else if (isHold(next)) {
      lane.shift();
      next.grant();
      void next.released.then(() => this.startNext(name, losses));
    } else {
      const batch = [next];
      lane.shift();
      for (
        let [first] = lane;
        first && !isHold(first) && batch.length < BATCH_SIZE;
        [first] = lane
      ) {
        batch.push(first);
        lane.shift();
      }
      this.options.run(name, batch, losses);
    }
  }

  /** Starts commands of a batch again that have lost a race, before all others. @param losses with this one */
  async retry(name: string, commands: P[], losses: number): Promise<void> {
    await backOff(losses);
    // Only now, so that they are not refused meanwhile: they had begun in time.
    this.lanes.get(name)?.unshift(...commands);
    this.startNext(name, losses);
  }

  /** Refuses work that waits too long. Stops the timer when none waits. */
  private refuseLate(): void {
    const { startWithinMs, describeOverload } = this.options;
    const now = performance.now();
    let isEmpty = true;
    for (const lane of this.lanes.values()) {
      for (let i = lane.length - 1; i >= 0; i--) {
        const waiting = lane[i];
        if (!waiting) continue;
        const isRetry = isHold(waiting) && waiting.isRetry;
        if (now - waiting.since <= (isRetry ? RETRY_WITHIN_MS : startWithinMs)) continue;
        lane.splice(i, 1);
        waiting.reject(
          isRetry ? createContentionError() : new UnavailableError(describeOverload()),
        );
      }
      if (lane.length > 0) isEmpty = false;
    }
    if (!isEmpty) return;
    clearInterval(this.watching);
    this.watching = undefined;
  }
}

function isHold<P extends Waiting>(waiting: P | Hold): waiting is Hold {
  return 'grant' in waiting;
}

/** Creates the error of work that lost every race to other processes. */
export function createContentionError(): UnavailableError {
  return new UnavailableError('Too many others are changing this record right now');
}

/**
 * Waits after lost races, with full jitter: processes that compete for one stream must not meet again at the same
 * moment.
 */
export function backOff(losses: number): Promise<void> {
  const ceiling = Math.min(2 ** losses, 100);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * ceiling));
}
