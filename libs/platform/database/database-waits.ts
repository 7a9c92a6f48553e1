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
    /** Tells whether the response has been sent: what runs for the request after that runs for nobody. */
    readonly isFinished: () => boolean = () => false,
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

/**
 * How work of several requests, or a part of one that must end whatever becomes of its caller, uses the database. Each of
 * them waits while it waits. Nobody's disconnection ends it, and it is never a large read.
 */
class SharedWait extends DatabaseWait {
  constructor(
    owner: string | number | undefined,
    private readonly waits: readonly DatabaseWait[],
  ) {
    super();
    this.owner = owner;
  }

  override start(): void {
    for (const wait of this.waits) wait.start();
  }

  override end(): void {
    for (const wait of this.waits) wait.end();
  }
}

/** Creates the wait of work for several requests, which counts as work of the first that has an owner. */
export function createSharedWait(
  waits: readonly (DatabaseWait | undefined)[],
): DatabaseWait | undefined {
  const all = waits.filter((wait) => wait !== undefined);
  if (all.length === 0) return undefined;
  const owner = all.find((wait) => wait.getOwner() !== undefined)?.getOwner();
  return new SharedWait(owner, all);
}

const waits = new AsyncLocalStorage<DatabaseWait | undefined>();

/**
 * Runs work in no request: its connections, timers and statements belong to all, so they must not go on as the request
 * that happened to start them.
 */
export const runOutside = AsyncLocalStorage.snapshot();

/** Runs work, and adds what it waits for the database to a request's wait. @param wait undefined: to none */
export function runWithWait<R>(wait: DatabaseWait | undefined, work: () => R): R {
  return waits.getStore() === wait ? work() : waits.run(wait, work);
}

/** Finds the wait of the request that runs at the moment; undefined outside of requests. */
export function findWait(): DatabaseWait | undefined {
  return waits.getStore();
}

/**
 * Runs a commit of the request that runs at the moment. It never waits behind the reads of its owner, and ends also when
 * the client has gone.
 */
export function runAsCommit<R>(work: () => R): R {
  const wait = findWait();
  if (!wait) return work();
  const owner = wait.getOwner();
  return runWithWait(
    new SharedWait(owner === undefined ? undefined : `commits of ${owner}`, [wait]),
    work,
  );
}

/**
 * Reports that a statement ran for a request whose response has been sent: in the context of another request, or because
 * nobody waits for its result.
 */
export class FinishedRequestError extends Error {
  constructor() {
    super('the response is sent: run what goes on after it outside of it, and await the rest');
  }
}

/** Tells whether the request that runs at the moment has its response. */
export function isFinished(): boolean {
  return findWait()?.isFinished() ?? false;
}

/** Finds whose the request is that runs at the moment, in place of the account that it is for. */
export function getOwnerKey(account: string | number): string | number {
  return findWait()?.owner ?? account;
}

/** Adds the time until the promise settles to the wait of the request that runs at the moment. */
export function addToWait<R>(result: Promise<R>): Promise<R> {
  const wait = findWait();
  if (!wait) return result;
  wait.start();
  return result.finally(() => wait.end());
}

/** The transaction of a pool that refuses it a second connection. */
const transactions = new AsyncLocalStorage<{ pool: object; isOpen: boolean }>();

/**
 * Reports that a transaction requested a second connection. When as many do that at once as the pool has connections, each
 * waits for the others.
 */
export class SecondConnectionError extends Error {
  constructor() {
    super('inside a transaction: run the query on its connection, or before it');
  }
}

/** Tells whether a transaction runs that must not get a second connection. @param pool one of its own; by default of any */
export function isInTransaction(pool?: object): boolean {
  const transaction = transactions.getStore();
  return transaction?.isOpen === true && (!pool || transaction.pool === pool);
}

/** @throws SecondConnectionError inside of a transaction: what others run for it would wait for another connection */
export function assertOutsideTransaction(): void {
  if (isInTransaction()) throw new SecondConnectionError();
}

/**
 * Runs the work of a transaction. Its request gets further connections first meanwhile.
 * @param pool if it refuses the transaction a second connection
 */
export async function runInTransaction<R>(
  pool: object | undefined,
  work: () => Promise<R>,
): Promise<R> {
  const wait = findWait();
  const transaction = pool && { pool, isOpen: true };
  if (wait) wait.transactionCount++;
  try {
    return await (transaction ? transactions.run(transaction, work) : work());
  } finally {
    if (wait) wait.transactionCount--;
    if (transaction) transaction.isOpen = false;
  }
}
