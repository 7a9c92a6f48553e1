import { AsyncResource } from 'node:async_hooks';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import {
  addToWait,
  FinishedRequestError,
  findWait,
  isFinished,
  runOutside,
} from './database-waits.js';
import {
  assertUsable,
  FACTS_STATEMENT,
  renderOpeningStatement,
  type ServerFacts,
  type SessionSettings,
} from './session.js';
import {
  findDatabaseError,
  findMissingResource,
  SQLSTATE,
  type MissingResource,
} from './sqlstate.js';

const { builtins, getTypeParser, setTypeParser } = pg.types;
/** Types of lists, which the driver does not name. */
const [INT4_LIST, INT8_LIST] = [1007, 1016] as const;
// Ids, counts and revisions stay far below 2^53; as strings, `revision + 1` would concatenate.
setTypeParser(builtins.INT8, Number);
setTypeParser(INT8_LIST as number, getTypeParser(INT4_LIST as number));

/**
 * Default time-out of a query. Longer than the server's own limit (LIMITS), so that it expires only when nothing
 * arrives at all.
 */
export const QUERY_TIMEOUT_MS = 22_000;
export const CONNECT_TIMEOUT_MS = 5_000;
const CLOSE_TIMEOUT_MS = 2_000;
/** After which a refusal for lack of a resource begins another outage, where no probe has found the end of the last one. */
const OUTAGE_GAP_MS = 60_000;
/** Between two looks at why a server is silent. */
const CHECK_AGAIN_MS = 250;
/** Followed by ten probes one second apart: a host that vanished is noticed within 20 s. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/** Options of every connection, pooled or not. */
export const CONNECTION = {
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
} as const satisfies pg.ClientConfig;

/** A statement with its own time-out: the driver supports it, its types do not. */
export type LimitedStatement = pg.QueryConfig & { query_timeout?: number };

/**
 * Reports that the server fell silent. The outcome of the statement is unknown, so callers handle it like a lost
 * connection.
 */
export class SilentConnectionError extends Error {
  constructor(withinMs: number) {
    super(`Connection terminated: no response within ${withinMs} ms`);
  }
}

/**
 * Reports that the server is a standby, as a primary is after a switchover that has not reached its name yet. Nothing can
 * be written there, and what is read may be old (ADR-0099).
 */
export class StandbyError extends Error {
  constructor() {
    super('Connection terminated: the server is a standby');
  }
}

/**
 * Reports that a transaction was rolled back when it was to be committed, because the error of one of its statements was
 * passed over: PostgreSQL reports that by the command that it names, not by an error.
 */
export class RolledBackError extends Error {
  constructor() {
    super('the transaction was rolled back: the error of one of its statements was passed over');
  }
}

/**
 * Failures of statements and connections for lack of resources: the latest, and how many there were.
 * @property isStandbyAway whether commits wait for a synchronous standby: the server responds, and confirms none of them
 */
export type Outages = {
  last: { message: string; at: number } | undefined;
  counts: Partial<Record<MissingResource, number>>;
  isStandbyAway: boolean;
};

/**
 * @property session settings of the session besides the pinned ones
 * @property acceptsStandby for a connection that only reads what may be old
 * @property isStrict whether faults of the program fail at once that cost little most of the time: a second connection for a
 *   transaction, which most often gets one, and statements of a request that is answered. Everywhere but in production
 */
export type DatabaseClientConfig = pg.ClientConfig & {
  session?: SessionSettings;
  acceptsStandby?: boolean;
  isStrict?: boolean;
  outages?: Outages;
};

const log = new Logger('database');
const failuresToConnect = new WeakSet<Error>();

/** Marks an error as one of a connection that was not made. */
export function markFailureToConnect(error: Error): Error {
  failuresToConnect.add(error);
  return error;
}

/** Tells whether no connection was made, for whatever reason: no statement was sent. */
export function isFailureToConnect(error: unknown): boolean {
  return error instanceof Error && failuresToConnect.has(error);
}

/**
 * Destroys a connection whose server falls silent. Has one timer at a time, which a query does not set or clear while a
 * later time is soon enough.
 */
class SilenceWatch {
  private timer: NodeJS.Timeout | undefined;
  private timerDueAt = Infinity;
  private dueAt = Infinity;
  private limitMs = 0;

  /** @param isExplained whether the server is silent for a reason that is known, and has to be waited for */
  constructor(
    private readonly destroy: (error: Error) => void,
    private readonly isExplained: () => boolean,
  ) {}

  /** Waits for a response. Never postpones the time-out of another query that is awaited. */
  start(limitMs: number): void {
    const dueAt = performance.now() + limitMs;
    if (limitMs === 0 || dueAt >= this.dueAt) return;
    this.dueAt = dueAt;
    this.limitMs = limitMs;
    if (dueAt < this.timerDueAt) this.setTimer();
  }

  /** Waits for nothing any more. */
  stop(): void {
    this.dueAt = Infinity;
  }

  end(): void {
    this.stop();
    clearTimeout(this.timer);
  }

  private setTimer(minMs = 1): void {
    clearTimeout(this.timer);
    this.timerDueAt = this.dueAt;
    const leftMs = Math.ceil(this.dueAt - performance.now());
    this.timer = setTimeout(() => this.check(), Math.max(leftMs, minMs)).unref();
  }

  private check(): void {
    this.timerDueAt = Infinity;
    if (performance.now() < this.dueAt) {
      if (this.dueAt < Infinity) this.setTimer();
    } else if (this.isExplained()) this.setTimer(CHECK_AGAIN_MS);
    else this.destroy(new SilentConnectionError(this.limitMs));
  }
}

/**
 * Pins the settings of its session, so that neither server, database nor role decides what our statements mean.
 * Refuses a database that Inkpad cannot work with, and a standby.
 * Closes itself when the server does not respond. The driver's own `query_timeout` only gives up waiting: the
 * connection stays in use, and later statements queue up behind the one that hangs.
 */
export class DatabaseClient extends pg.Client {
  private readonly session: SessionSettings;
  private readonly acceptsStandby: boolean;
  private readonly openTimeoutMs: number;

  constructor(settings: DatabaseClientConfig = {}) {
    // The limit is kept below. The driver's own would keep queries in memory as well (see `queryAsPromise`).
    super({ ...settings, query_timeout: 0 });
    this.session = settings.session ?? {};
    this.acceptsStandby = settings.acceptsStandby ?? false;
    this.openTimeoutMs = settings.connectionTimeoutMillis ?? CONNECT_TIMEOUT_MS;
    const { outages } = settings;
    this.connection.on('errorMessage', ({ code, message }: pg.DatabaseError) => {
      const resource = findMissingResource(code);
      if (!outages || resource === undefined) return;
      // One line for each outage: every request that meets it logs a warning of its own.
      if (!outages.last || performance.now() > outages.last.at + OUTAGE_GAP_MS)
        log.error(
          `the database refuses statements (${resource}: ${message}): requests get 503 until it accepts them (docs/operating/incidents.md)`,
        );
      outages.last = { message, at: performance.now() };
      outages.counts[resource] = (outages.counts[resource] ?? 0) + 1;
    });
    // A connection may break while nobody listens: its next query says so, and the process must not end by it.
    this.on('error', ignore);
    const defaultTimeoutMs = settings.query_timeout ?? 0;
    const silence = new SilenceWatch(
      (error) => this.connection.stream.destroy(error),
      // The server keeps a connection whose commit waits for a standby. Leaving it would cost one more for each try.
      () => outages?.isStandbyAway ?? false,
    );
    this.on('drain', () => silence.stop());
    this.on('end', () => silence.end());
    const query = this.query.bind(this) as (...queryArguments: unknown[]) => unknown;
    this.query = ((...queryArguments: unknown[]) => {
      const [statement, second, third] = queryArguments;
      // A rollback is let through, so that no open transaction goes back to the pool.
      if (settings.isStrict && isFinished() && !hasText(statement, ROLLBACK)) {
        return fail(new FinishedRequestError(), [second, third]);
      }
      const timeoutMs = (statement as Partial<LimitedStatement> | undefined)?.query_timeout;
      silence.start(timeoutMs ?? defaultTimeoutMs);
      if (timeoutMs !== undefined) {
        queryArguments[0] = { ...(statement as LimitedStatement), query_timeout: 0 };
      }
      const callbackAt = typeof second === 'function' ? 1 : typeof third === 'function' ? 2 : 0;
      if (callbackAt > 0) return query(...bindCallback(queryArguments, callbackAt));
      return isSubmittable(statement)
        ? query(...queryArguments)
        : addToWait(queryAsPromise(query, queryArguments));
    }) as typeof this.query;
    const end = this.end.bind(this) as (...endArguments: unknown[]) => unknown;
    this.end = ((...endArguments: unknown[]) => {
      const closing = setTimeout(() => this.connection.stream.destroy(), CLOSE_TIMEOUT_MS);
      this.once('end', () => clearTimeout(closing));
      return end(...endArguments);
    }) as typeof this.end;
  }

  override connect(): Promise<this>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): Promise<this> | undefined {
    // The socket outlives the request that made the pool grow.
    return runOutside(() => this.connectOutside(callback));
  }

  private connectOutside(callback?: (error: Error | null) => void): Promise<this> | undefined {
    const connection = super
      .connect()
      .then(() => this.open())
      .catch((error: Error) => {
        throw markFailureToConnect(error);
      });
    if (!callback) return connection.then(() => this);
    void connection.then(
      () => callback(null),
      (error: Error) => callback(error),
    );
    return undefined;
  }

  private async open(): Promise<void> {
    try {
      await this.openSession();
    } catch (error) {
      // Nobody else will: a pool forgets a client that could not connect.
      this.end().catch(ignore);
      throw error;
    }
  }

  /** @throws ConfigError when Inkpad cannot work with the server; StandbyError */
  private async openSession(): Promise<void> {
    const queryFacts = (text: string) => {
      const statement: LimitedStatement = { text, query_timeout: this.openTimeoutMs };
      return this.query<ServerFacts>(statement);
    };
    const place = `${this.database ?? ''} at ${this.host}:${this.port}`;
    try {
      const { rows } = await queryFacts(renderOpeningStatement(this.session));
      assertUsable(rows[0], place);
      if (rows[0]?.is_standby && !this.acceptsStandby) throw new StandbyError();
    } catch (error) {
      // A server that is too old lacks a function of the statement.
      if (findDatabaseError(error)?.code !== SQLSTATE.undefinedFunction) throw error;
      assertUsable((await queryFacts(FACTS_STATEMENT)).rows[0], place);
      throw error;
    }
  }
}

/**
 * Creates a connection outside the pool.
 * @param overrides such as a `query_timeout` of 0, for statements that may take long
 */
export function createDatabaseClient(
  databaseUrl: string,
  application: string,
  overrides: DatabaseClientConfig = {},
): DatabaseClient {
  return new DatabaseClient({
    connectionString: databaseUrl,
    application_name: `inkpad ${application}`,
    query_timeout: QUERY_TIMEOUT_MS,
    ...CONNECTION,
    ...overrides,
  });
}

/**
 * Returns a promise for a query with a callback. The driver's own promise is resolved by a function that it assigns
 * to a property. V8 takes such functions for methods and creates them in the old generation. The whole query with its
 * values and rows then outlives every collection of the young one.
 */
function queryAsPromise(
  query: (...queryArguments: unknown[]) => unknown,
  queryArguments: unknown[],
): Promise<unknown> {
  const [statement, values] = queryArguments;
  const result = new Promise((resolve, reject) => {
    query(statement, values, (error: Error | null, value: unknown) => {
      if (error) reject(error);
      else if (isRolledBack(statement, value)) reject(new RolledBackError());
      else resolve(value);
    });
  });
  return result.catch((error: unknown) => {
    // As the driver does: its own stack leads to the socket, this one to whoever asked.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  });
}

/**
 * Lets a query call back as the request that runs at the moment, and adds the time until then to its wait. The socket calls
 * back as nobody.
 */
function bindCallback(queryArguments: unknown[], callbackAt: number): unknown[] {
  const callback = queryArguments[callbackAt] as (...result: unknown[]) => void;
  const wait = findWait();
  // Costs less than a microsecond; `AsyncLocalStorage.snapshot()` takes 50 of Node.js 20.
  const context = new AsyncResource('query');
  wait?.start();
  return queryArguments.with(callbackAt, (...result: unknown[]) => {
    wait?.end();
    context.runInAsyncScope(callback, undefined, ...result);
  });
}

const COMMIT = /^\s*(commit|end)\b/i;
const ROLLBACK = /^\s*rollback\b/i;

/** Tells whether a statement that was to commit has rolled back. */
function isRolledBack(statement: unknown, result: unknown): boolean {
  return (result as Partial<pg.QueryResult>).command === 'ROLLBACK' && hasText(statement, COMMIT);
}

function hasText(statement: unknown, pattern: RegExp): boolean {
  const text = typeof statement === 'string' ? statement : (statement as pg.QueryConfig).text;
  return pattern.test(text);
}

/** Fails a statement before it is sent, in the way in which its caller waits for it. */
function fail(error: Error, callbacks: unknown[]): Promise<never> | undefined {
  const callback = callbacks.find((argument) => typeof argument === 'function');
  if (!callback) return Promise.reject(error);
  process.nextTick(callback as (error: Error) => void, error);
  return undefined;
}

/** Tells whether a statement handles its own result. */
function isSubmittable(statement: unknown): boolean {
  return typeof statement === 'object' && statement !== null && 'submit' in statement;
}

function ignore(): void {
  // Whoever waits for the connection gets the first error.
}
