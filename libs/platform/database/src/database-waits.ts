import { AsyncLocalStorage } from 'node:async_hooks';

/** Adds up how long one request waits for the database. Waits at the same time count once. */
export class DatabaseWait {
  private runningCount = 0;
  private startedAt = 0;
  private endedMs = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

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
export function runWithWait(wait: DatabaseWait | undefined, work: () => void): void {
  if (waits.getStore() === wait) work();
  else waits.run(wait, work);
}

/** Finds the wait of the request that runs at the moment; undefined outside of requests, and if nobody logs them. */
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
