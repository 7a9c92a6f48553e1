import { AsyncLocalStorage } from 'node:async_hooks';

const readPerformanceNow = performance.now.bind(performance);

/** How one request uses the database. Adds up how long it waits for it; waits at the same time count once. */
export class DatabaseWait {
  /** Whether its statements read much: those of one owner then run one at a time. */
  readsMuch = false;
  /** Number of its open transactions. What it does meanwhile must not wait for connections that they hold. */
  transactionCount = 0;
  /** Whose the request is, once that is known: owners share the connections. */
  owner: string | number | undefined;
  private runningCount = 0;
  private startedAt = 0;
  private endedMs = 0;

  constructor(
    private readonly now: () => number = readPerformanceNow,
    /** Tells whether nobody waits for the response any more. */
    readonly isAbandoned: () => boolean = () => false,
    /** Finds the owner of a request as long as that is not known. */
    private readonly findDefaultOwner: () => string | undefined = () => undefined,
  ) {}

  /** Returns whose the request is; undefined for work of all. */
  getOwner(): string | number | undefined {
    return this.owner ?? this.findDefaultOwner();
  }

  get milliseconds(): number {
    return this.endedMs + (this.runningCount > 0 ? this.now() - this.startedAt : 0);
  }

  start(): void {
    if (this.runningCount++ === 0) this.startedAt = this.now();
  }

  end(): void {
    if (--this.runningCount === 0) this.endedMs += this.now() - this.startedAt;
  }
}

const waits = new AsyncLocalStorage<DatabaseWait | undefined>();

/** Runs work, and adds what it waits for the database to a request's wait. @param wait undefined: to none */
export function runWithWait<R>(wait: DatabaseWait | undefined, work: () => R): R {
  return waits.getStore() === wait ? work() : waits.run(wait, work);
}

/** Finds the wait of the request that runs at the moment; undefined outside of requests. */
export function findWait(): DatabaseWait | undefined {
  return waits.getStore();
}

/** Adds the time until the promise settles to the wait of the request that runs at the moment. */
export function addToWait<R>(result: Promise<R>): Promise<R> {
  const wait = findWait();
  if (!wait) return result;
  wait.start();
  return result.finally(() => wait.end());
}

/** Counts a transaction of the request that runs at the moment, during which that gets further connections first. */
export async function countTransaction<R>(work: () => Promise<R>): Promise<R> {
  const wait = findWait();
  if (!wait) return work();
  wait.transactionCount++;
  try {
    return await work();
  } finally {
    wait.transactionCount--;
  }
}
