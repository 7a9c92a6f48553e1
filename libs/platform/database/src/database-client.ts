import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import {
  assertUsable,
  openingStatement,
  type ServerFacts,
  type SessionSettings,
} from './session.js';
import { isOutageState } from './sqlstate.js';

/**
 * Longer than the server's own limit for a statement (LIMITS), so that it expires only when no answer
 * comes at all.
 */
export const ANSWER_WITHIN_MS = 22_000;
const CONNECT_WITHIN_MS = 5_000;
const CLOSE_WITHIN_MS = 2_000;
/** Followed by ten probes one second apart: a host that vanished is noticed within 20 s. */
const KEEP_ALIVE_AFTER_MS = 10_000;
const CHECK_EVERY_MS = 10_000;
const CHECK_WITHIN_MS = 5_000;
/** How often a pool whose server has fallen silent looks for it, and how long a call waits for that. */
const LOOK_EVERY_MS = 500;
const LOOK_WITHIN_MS = 1_000;
/** Two checks have failed to come by then. */
const UNCHECKED_FOR_MS = 20_000;

/** Options of every connection, pooled or not. */
export const CONNECTION = {
  connectionTimeoutMillis: CONNECT_WITHIN_MS,
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
} as const satisfies pg.ClientConfig;

/** A statement with its own time-out: the driver supports it, its types do not. */
export type LimitedStatement = pg.QueryConfig & { query_timeout?: number };

/** The outcome of the statement is unknown, so callers handle it like a lost connection. */
export class SilentConnectionError extends Error {
  constructor(withinMs: number) {
    super(`Connection terminated: no answer within ${withinMs} ms`);
  }
}

/** What the server lacked when it last refused a statement or a connection of a pool. */
export type Outages = { last: { message: string; at: number } | undefined };

/** @property session settings of the session beside the pinned ones */
export type DatabaseClientConfig = pg.ClientConfig & {
  session?: SessionSettings;
  outages?: Outages;
};

const failuresToConnect = new WeakSet<Error>();

/** Whether no connection came about, for whatever reason: nothing was asked on it. */
export function isFailureToConnect(error: unknown): boolean {
  return error instanceof Error && failuresToConnect.has(error);
}

/**
 * Pins the settings of its session, so that neither server, database nor role decides what our statements mean, and refuses
 * a database that Inkpad cannot work with.
 *
 * Ends itself when the server does not answer. The driver's own `query_timeout` only gives up waiting: the
 * connection stays in use, and whatever is asked next queues up behind the statement that hangs.
 */
export class DatabaseClient extends pg.Client {
  private readonly session: SessionSettings;
  private readonly openWithinMs: number;

  constructor(settings: DatabaseClientConfig = {}) {
    // The limit is kept below. The driver's own would keep queries in memory as well (see `promised`).
    super({ ...settings, query_timeout: 0 });
    this.session = settings.session ?? {};
    this.openWithinMs = settings.connectionTimeoutMillis ?? CONNECT_WITHIN_MS;
    const { outages } = settings;
    this.connection.on('errorMessage', ({ code, message }: pg.DatabaseError) => {
      if (outages && isOutageState(code)) outages.last = { message, at: performance.now() };
    });
    const usual = settings.query_timeout ?? 0;
    let timer: NodeJS.Timeout | undefined;
    let due = Infinity;
    const answered = () => {
      clearTimeout(timer);
      due = Infinity;
    };
    this.on('drain', answered);
    this.on('end', answered);
    const query = this.query.bind(this) as (...given: unknown[]) => unknown;
    this.query = ((...given: unknown[]) => {
      const withinMs = limitOf(given[0]) ?? usual;
      const overdue = performance.now() + withinMs;
      // Whatever is asked while another answer is awaited must not put off the end of that wait.
      if (withinMs > 0 && overdue < due) {
        const silent = () => this.connection.stream.destroy(new SilentConnectionError(withinMs));
        clearTimeout(timer);
        due = overdue;
        timer = setTimeout(silent, withinMs);
      }
      return isPromiseWanted(given) ? promised(query, given) : query(...given);
    }) as typeof this.query;
    const end = this.end.bind(this) as (...given: unknown[]) => unknown;
    this.end = ((...given: unknown[]) => {
      const closing = setTimeout(() => this.connection.stream.destroy(), CLOSE_WITHIN_MS);
      this.once('end', () => clearTimeout(closing));
      return end(...given);
    }) as typeof this.end;
  }

  override connect(): Promise<this>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): Promise<this> | undefined {
    // The pool listens only once it is called back; an error in between must not end the process.
    this.on('error', ignore);
    const opened = super
      .connect()
      .then(() => this.open())
      .catch((error: Error) => {
        failuresToConnect.add(error);
        throw error;
      });
    if (!callback) return opened.then(() => this).finally(() => this.off('error', ignore));
    opened
      .then(
        () => callback(null),
        (error: Error) => callback(error),
      )
      .finally(() => this.off('error', ignore));
    return undefined;
  }

  private async open(): Promise<void> {
    const opening: LimitedStatement = {
      text: openingStatement(this.session),
      query_timeout: this.openWithinMs,
    };
    try {
      const { rows } = await this.query<ServerFacts>(opening);
      assertUsable(rows[0], `${this.database ?? ''} at ${this.host}:${this.port}`);
    } catch (error) {
      // Nobody else will: a pool forgets a client that could not connect.
      this.end().catch(ignore);
      throw error;
    }
  }
}

/** What the driver says of a server that takes a connection and then says nothing. */
const UNANSWERED = /^Connection terminated due to connection timeout/;

type Taken = Parameters<Parameters<pg.Pool['connect']>[0] & object>;

/**
 * When one connection falls silent, the idle ones are most likely dead as well. Until a new one comes about, nothing waits
 * for the server: what a request asks next would add up to more than its caller waits.
 */
export class DatabasePool extends pg.Pool {
  readonly outages: Outages;
  /** While the server is silent: whether the look under way has found it. */
  private look: Promise<boolean> | undefined;

  constructor(private readonly settings: pg.PoolConfig & DatabaseClientConfig) {
    const outages: Outages = { last: undefined };
    const more = { outages, Client: DatabaseClient };
    super({ ...settings, ...more });
    this.outages = outages;
    this.on('release', (error: unknown) => {
      if (!(error instanceof SilentConnectionError)) return;
      this.discardIdle();
      void this.lookForServer();
    });
    const connect = this.connect.bind(this) as (callback: (...taken: Taken) => void) => void;
    const take = (callback: (...taken: Taken) => void): void => {
      const noticing = (...taken: Taken) => {
        if (taken[0] && UNANSWERED.test(taken[0].message)) void this.lookForServer();
        callback(...taken);
      };
      if (!this.look) return connect(noticing);
      void this.look.then((isThere) => {
        if (isThere) connect(noticing);
        else callback(silentServer(), undefined, ignore);
      });
    };
    this.connect = ((callback?: (...taken: Taken) => void) => {
      if (callback) return take(callback);
      return new Promise((resolve, reject) => {
        take((error, client) => (client ? resolve(client) : reject(error)));
      });
    }) as typeof this.connect;
  }

  private async lookForServer(): Promise<void> {
    if (this.look) return;
    for (let isThere = false; !isThere && !this.ending;) {
      this.look = this.isServerThere();
      isThere = await this.look;
      if (!isThere) await wait(LOOK_EVERY_MS, undefined, { ref: false });
    }
    this.look = undefined;
  }

  private async isServerThere(): Promise<boolean> {
    const client = new DatabaseClient({
      ...this.settings,
      connectionTimeoutMillis: LOOK_WITHIN_MS,
      query_timeout: LOOK_WITHIN_MS,
    });
    client.on('error', ignore);
    try {
      await client.connect();
      return true;
    } catch (error) {
      // It has said something.
      return error instanceof pg.DatabaseError;
    } finally {
      client.end().catch(ignore);
    }
  }

  private discardIdle(): void {
    for (let left = this.idleCount; left > 0; left--) {
      this.connect((_error, client) => client?.release(true));
    }
  }
}

/**
 * A connection outside the pool. @param more such as a `query_timeout` of 0, for statements that may take
 * long
 */
export function databaseClient(
  databaseUrl: string,
  application: string,
  more: DatabaseClientConfig = {},
): DatabaseClient {
  return new DatabaseClient({
    connectionString: databaseUrl,
    application_name: `inkpad ${application}`,
    query_timeout: ANSWER_WITHIN_MS,
    ...CONNECTION,
    ...more,
  });
}

/**
 * Probes a connection that only listens or holds a lock, so that a silent loss is emitted as an `error` like any other.
 * The server ends the session as well when no probe comes: the kernel or a proxy may keep the connection of a process
 * that is stopped or cut off alive for ever, and with it the lock.
 */
export function checkNowAndThen(client: DatabaseClient): void {
  const check: LimitedStatement = {
    text: `set idle_session_timeout = ${UNCHECKED_FOR_MS}`,
    query_timeout: CHECK_WITHIN_MS,
  };
  const probe = () => {
    // The client emits the error to its listeners as well.
    client.query(check).catch(() => clearInterval(timer));
  };
  const timer = setInterval(probe, CHECK_EVERY_MS);
  timer.unref();
  client.once('end', () => clearInterval(timer));
  probe();
}

/**
 * The driver's own promise is resolved by a function that it assigns to a property. V8 takes such functions for methods
 * and creates them in the old generation; what they refer to, the whole query with its values and rows, then outlives
 * every collection of the young one.
 */
function promised(query: (...given: unknown[]) => unknown, given: unknown[]): Promise<unknown> {
  const [statement, values] = given;
  const answer = new Promise((resolve, reject) => {
    query(statement, values, (error: Error | null, result: unknown) => {
      if (error) reject(error);
      else resolve(result);
    });
  });
  return answer.catch((error: unknown) => {
    // As the driver does: its own stack leads to the socket, this one to whoever asked.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  });
}

/** Neither has a callback been given, nor a statement that answers in its own way. */
function isPromiseWanted(given: unknown[]): boolean {
  const [statement] = given;
  const hasCallback = given.some((each) => typeof each === 'function');
  const isSubmitted = typeof statement === 'object' && statement !== null && 'submit' in statement;
  return !hasCallback && !isSubmitted;
}

function silentServer(): Error {
  const error = new Error('Connection terminated: the server is silent');
  failuresToConnect.add(error);
  return error;
}

function ignore(): void {
  // Whoever waits for the connection gets the first error.
}

function limitOf(statement: unknown): number | undefined {
  if (typeof statement !== 'object' || statement === null) return undefined;
  const { query_timeout } = statement as LimitedStatement;
  return query_timeout;
}
