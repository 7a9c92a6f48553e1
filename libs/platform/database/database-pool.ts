import { AsyncResource } from 'node:async_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { OverloadError, UnavailableError } from '#platform/kernel/errors.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import {
  CONNECT_TIMEOUT_MS,
  DatabaseClient,
  markFailureToConnect,
  SilentConnectionError,
  StandbyError,
  type DatabaseClientConfig,
  type Outages,
} from './database-client.js';
import {
  FinishedRequestError,
  findWait,
  isFinished,
  isInTransaction,
  runOutside,
  SecondConnectionError,
  type DatabaseWait,
} from './database-waits.js';

/** Interval and time-out of the probes of a pool whose server is silent or a standby. */
const PROBE_INTERVAL_MS = 500;
const PROBE_TIMEOUT_MS = 1_000;
/**
 * How often a connection that leads to a standby is opened again at once. For some seconds after a switchover a proxy takes
 * both servers for the primary and leads to one after the other.
 */
const STANDBYS_IN_A_ROW = 4;

/** Message of the driver when a server accepts a connection and then stays silent. */
const CONNECT_TIMEOUT_MESSAGE = /^Connection terminated due to connection timeout/;

type ConnectResult = Parameters<Parameters<pg.Pool['connect']>[0] & object>;

/**
 * An owner may have as many connections as it leaves free, less one (Choudhury, Hahne 1998): half of them while it is
 * alone, fewer beside others, and one is always left for work of no owner.
 */
const getMaxConnections = (freeCount: number) => freeCount - 1;
/** Connections that commits keep while nobody uses them: as many as commit at a time. Without commits, one stays. */
const IDLE_FOR_COMMITS = { max: 4, min: 1, checkEveryMs: 30_000 };
/** Reads that cost much: one at a time for each owner. All together have one connection, or up to two fifths of them. */
const LARGE_READS = { share: 0.4, maxWaiting: 100, waitMs: 3_000 };
/** Large reads of one request: one at a time. Each waits for the others at most as long as its caller. */
const REQUEST_READS = { concurrency: 1, maxWaiting: Infinity, waitMs: 30_000 };

type Release = () => void;

/**
 * Shares its connections between the owners of requests by fair queueing (ADR-0134). Discards idle connections when one
 * falls silent: the others most likely do as well. A standby that is met while connecting says nothing about those that are
 * open (ADR-0099). Until a new connection succeeds, no request waits for one, because its waits would add up to more than
 * its caller allows.
 */
export class DatabasePool extends pg.Pool {
  readonly outages: Outages;
  private readonly connections: FairQueue;
  private readonly largeReads: FairQueue;
  private readonly requestReads = new WeakMap<DatabaseWait, FairQueue>();
  private readonly releases = new WeakMap<pg.PoolClient, Release>();
  /** Idle connections that commits have kept, the last used one at the end. */
  private readonly idleForCommits: pg.PoolClient[] = [];
  /** The fewest that were idle since the last check: commits have not needed these. */
  private unneededCount = 0;
  private checkTimer: NodeJS.Timeout | undefined;
  private readonly commitListeners = new WeakMap<pg.PoolClient, (error: Error) => void>();
  private readonly commitErrors = new WeakMap<pg.PoolClient, Error>();
  /** While the server is silent or a standby: the probe in progress, and whether it found a primary. */
  private probe: Promise<boolean> | undefined;
  private isStandby = false;
  /** Takes a connection of the driver's pool, which calls back in the context of whoever has released it. */
  private readonly connectOrWait: (callback: (...result: ConnectResult) => void) => void;

  constructor(private readonly settings: pg.PoolConfig & DatabaseClientConfig) {
    const outages: Outages = { last: undefined, counts: {}, isStandbyAway: false };
    const defaults = { outages, Client: DatabaseClient };
    super({ ...settings, ...defaults });
    this.outages = outages;
    const { max, connectionTimeoutMillis: waitMs = CONNECT_TIMEOUT_MS } = this.options;
    this.connections = new FairQueue({
      concurrency: max,
      ...(max > 1 && { getMaxRunning: getMaxConnections }),
      maxWaiting: Infinity,
      waitMs,
    });
    this.largeReads = new FairQueue({
      concurrency: Math.max(1, Math.floor(max * LARGE_READS.share)),
      getMaxRunning: () => 1,
      maxWaiting: LARGE_READS.maxWaiting,
      waitMs: LARGE_READS.waitMs,
    });
    this.on('release', (error, client) => this.handleRelease(error, client));
    this.connectOrWait = this.connect.bind(this) as typeof this.connectOrWait;
    this.connect = ((callback?: (...result: ConnectResult) => void) => {
      if (callback) return this.connectInSlot(callback);
      return new Promise((resolve, reject) => {
        this.connectInSlot((error, client) => (client ? resolve(client) : reject(error)));
      });
    }) as typeof this.connect;
  }

  /** @param isForCommit whether it waits neither for others of its owner nor for large reads */
  private connectInSlot(callback: (...result: ConnectResult) => void, isForCommit = false): void {
    const wait = findWait();
    const context = new AsyncResource('connect');
    wait?.start();
    let release: Release = ignore;
    let standbyCount = 0;
    const onConnect = (...result: ConnectResult): void => {
      const [error, client] = result;
      if (error instanceof StandbyError && ++standbyCount < STANDBYS_IN_A_ROW && !this.probe)
        return this.connectOrWait(onConnect);
      // Before the next one starts, who would wait for another connection in vain.
      if (error instanceof StandbyError || (error && CONNECT_TIMEOUT_MESSAGE.test(error.message)))
        this.startProbing(error);
      if (client) this.releases.set(client, release);
      else release();
      wait?.end();
      context.runInAsyncScope(callback, undefined, ...result);
    };
    const fail = (error: Error) => onConnect(error, undefined, ignore);
    const fault = this.findFault();
    if (fault) {
      process.nextTick(fail, fault);
      return;
    }
    this.runWhenReachable(fail, () => {
      this.takeSlot(isForCommit ? undefined : wait, (error, end) => {
        release = end;
        if (error) fail(error);
        else {
          this.runWhenReachable(fail, () => {
            this.makeRoom();
            this.connectOrWait(onConnect);
          });
        }
      });
    });
  }

  private handleRelease(error: unknown, client: pg.PoolClient): void {
    if (error instanceof SilentConnectionError) {
      // Before the next one starts, who would wait on another silent connection.
      this.discardIdle();
      this.startProbing(error);
    }
    this.releases.get(client)?.();
    this.releases.delete(client);
  }

  /**
   * Takes a connection for a commit: one that an earlier commit has kept, or one of the pool. It takes no slot from the
   * requests, which get every kept connection that they need.
   * @param onTake gets it before anything else runs, or the error
   */
  acquireForCommit(
    onTake: (error: Error | undefined, client: pg.PoolClient | undefined) => void,
  ): void {
    const reusable = this.findFault() ? undefined : this.idleForCommits.pop();
    this.unneededCount = Math.min(this.unneededCount, this.idleForCommits.length);
    if (reusable) return onTake(undefined, reusable);
    this.connectInSlot((error, client) => {
      if (client) this.prepareForCommits(client);
      onTake(error, client);
    }, true);
  }

  private prepareForCommits(client: pg.PoolClient): void {
    this.releases.get(client)?.();
    this.releases.delete(client);
    const onError = (error: Error) => {
      const at = this.idleForCommits.indexOf(client);
      // A statement that runs on it fails with the same error, unless its result has arrived before.
      if (at < 0) {
        this.commitErrors.set(client, error);
        return;
      }
      this.idleForCommits.splice(at, 1);
      this.returnToPool(client, error);
      // A server that shuts down ends them one by one: no request may begin on one and find the others gone.
      this.discardIdle();
    };
    client.on('error', onError);
    this.commitListeners.set(client, onError);
  }

  /** Keeps a connection for the next commit, unless it is broken, enough are kept or somebody waits for one. */
  releaseAfterCommit(client: pg.PoolClient, cause?: Error): void {
    const error = cause ?? this.commitErrors.get(client);
    const isEnough = this.idleForCommits.length >= IDLE_FOR_COMMITS.max || this.waitingCount > 0;
    if (error || isEnough || this.ending) return this.returnToPool(client, error);
    this.idleForCommits.push(client);
    this.checkTimer ??= setInterval(
      () => this.returnUnneeded(),
      IDLE_FOR_COMMITS.checkEveryMs,
    ).unref();
  }

  /** Gives back the kept connections that no commit has needed, which the pool closes when nobody else needs them. */
  private returnUnneeded(): void {
    const surplus = this.idleForCommits.length - IDLE_FOR_COMMITS.min;
    for (const client of this.idleForCommits.splice(0, Math.min(this.unneededCount, surplus)))
      this.returnToPool(client);
    this.unneededCount = this.idleForCommits.length;
  }

  /** Gives back a kept connection if the pool has none for the next one who waits. */
  private makeRoom(): void {
    const isShort = this.totalCount >= this.options.max || this.probe !== undefined;
    const isUsedUp = this.idleCount <= this.waitingCount && isShort;
    const client = isUsedUp ? this.idleForCommits.shift() : undefined;
    if (client) this.returnToPool(client);
  }

  private returnToPool(client: pg.PoolClient, error?: Error | boolean): void {
    client.off('error', this.commitListeners.get(client) ?? ignore);
    client.release(error);
  }

  override end(): Promise<void>;
  override end(callback: () => void): void;
  override end(callback?: () => void): Promise<void> | undefined {
    clearInterval(this.checkTimer);
    for (const client of this.idleForCommits.splice(0)) this.returnToPool(client);
    return callback ? (super.end(callback) as undefined) : super.end();
  }

  /** Number of connections that nobody uses at the moment. */
  get unusedCount(): number {
    return this.idleCount + this.idleForCommits.length;
  }

  /** Number of statements that wait for a connection. */
  get queuedCount(): number {
    return this.waitingCount + this.connections.waitingCount + this.largeReads.waitingCount;
  }

  /** Whether faults of the program fail at once. */
  get isStrict(): boolean {
    return this.settings.isStrict === true;
  }

  /**
   * Refuses a commit that the server would not confirm. It would take a connection of the server for as long as the standby is
   * away, and nobody could tell its caller what became of it.
   * @throws UnavailableError with nothing written
   */
  assertConfirmsCommits(): void {
    const { counts, isStandbyAway } = this.outages;
    if (!isStandbyAway) return;
    counts.synchronous_standby = (counts.synchronous_standby ?? 0) + 1;
    throw new UnavailableError('The synchronous standby of the database is away');
  }

  /** Finds out why the work that runs at the moment must not get a connection: a fault of the program. */
  private findFault(): Error | undefined {
    if (isInTransaction(this)) return new SecondConnectionError();
    return this.isStrict && isFinished() ? new FinishedRequestError() : undefined;
  }

  private runWhenReachable(fail: (error: Error) => void, connect: () => void): void {
    // An open connection to a primary never leads to a standby: the server ends it first.
    const unusedCount = this.isStandby ? this.unusedCount : 0;
    if (!this.probe || unusedCount > this.waitingCount) return connect();
    void this.probe.then((isThere) => (isThere ? connect() : fail(this.createAbsenceError())));
  }

  /** Waits for a connection that the request may have. What a transaction needs to end is not held up by its owner. */
  private takeSlot(
    wait: DatabaseWait | undefined,
    start: (error: Error | undefined, release: Release) => void,
  ): void {
    const key = wait?.transactionCount === 0 ? wait.getOwner() : undefined;
    const takeConnection = (end: Release): void => {
      this.connections.acquire(key, (error, release) => {
        const releaseAll = () => {
          release();
          end();
        };
        start(error, releaseAll);
      });
    };
    if (!wait || key === undefined || !wait.readsMuch) return takeConnection(ignore);
    this.takeLargeRead(wait, key, (error, end) => {
      if (error) start(error, end);
      else if (wait.isAbandoned()) start(new OverloadError('The client has disconnected'), end);
      else takeConnection(end);
    });
  }

  /** Waits for the owner's large read, in which a request never waits for another one of its own statements. */
  private takeLargeRead(
    wait: DatabaseWait,
    key: string | number,
    start: (error: Error | undefined, release: Release) => void,
  ): void {
    const requestReads = this.requestReads.get(wait) ?? new FairQueue(REQUEST_READS);
    this.requestReads.set(wait, requestReads);
    requestReads.acquire(undefined, (requestError, endOfRequest) => {
      if (requestError) return start(requestError, endOfRequest);
      this.largeReads.acquire(key, (error, endOfOwner) =>
        start(error, () => {
          endOfOwner();
          endOfRequest();
        }),
      );
    });
  }

  private startProbing(cause: Error): void {
    // No request waits for its end in the context of another.
    void runOutside(() => this.waitForServer(cause));
  }

  private async waitForServer(cause: Error): Promise<void> {
    if (this.probe) return;
    this.isStandby = cause instanceof StandbyError;
    for (let isThere = false; !isThere && !this.ending;) {
      this.probe = this.canReachPrimary();
      isThere = await this.probe;
      if (!isThere) await wait(PROBE_INTERVAL_MS, undefined, { ref: false });
    }
    this.probe = undefined;
  }

  private async canReachPrimary(): Promise<boolean> {
    for (let tries = 0; tries < STANDBYS_IN_A_ROW; tries++) {
      if (await this.canConnect()) return true;
      if (!this.isStandby) break;
    }
    return false;
  }

  private async canConnect(): Promise<boolean> {
    const client = new DatabaseClient({
      ...this.settings,
      connectionTimeoutMillis: PROBE_TIMEOUT_MS,
      query_timeout: PROBE_TIMEOUT_MS,
    });
    client.on('error', ignore);
    try {
      await client.connect();
      return true;
    } catch (error) {
      this.isStandby = error instanceof StandbyError;
      // It has said something.
      return error instanceof pg.DatabaseError;
    } finally {
      client.end().catch(ignore);
    }
  }

  private createAbsenceError(): Error {
    const error = this.isStandby
      ? new StandbyError()
      : new Error('Connection terminated: the server is silent');
    return markFailureToConnect(error);
  }

  private discardIdle(): void {
    for (const client of this.idleForCommits.splice(0)) this.returnToPool(client, true);
    // As work of no owner, not of the one whose connection has ended.
    runOutside(() => {
      for (let left = this.idleCount; left > 0; left--) {
        this.connect((_error, client) => client?.release(true));
      }
    });
  }
}

function ignore(): void {
  // Whoever waits for the connection gets the first error.
}
