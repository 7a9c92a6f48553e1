import pg from 'pg';
import {
  EntityManager,
  QueryFailedError,
  QueryRunnerAlreadyReleasedError,
  QueryRunnerProviderAlreadyReleasedError,
} from 'typeorm';
import { ConfigError } from '#platform/kernel/config-error.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { getPool } from './data-source.js';
import { isFailureToConnect } from './database-client.js';
import { DatabasePool } from './database-pool.js';
import { FinishedRequestError, runInTransaction, SecondConnectionError } from './database-waits.js';
import {
  findDatabaseError,
  endsConnection,
  isOutageState,
  isRolledBackForRetry,
  SQLSTATE,
} from './sqlstate.js';

/** The pool, or a transaction, which must not wait for a second connection. */
export type Queryable = pg.Pool | pg.ClientBase | EntityManager;

type Statement = { name?: string; text: string; values?: unknown[] };

/**
 * Runs a query before a write, or within a transaction. A lost connection becomes a 503, which tells the caller that nothing
 * was written and a retry is safe.
 * @returns the rows, of whatever statement: also those that an update returns
 * @throws UnavailableError
 */
export async function query<R extends pg.QueryResultRow>(
  by: Queryable,
  statement: Statement | string,
  values?: unknown[],
): Promise<R[]> {
  const run = async (client: pg.ClientBase) => (await client.query<R>(statement, values)).rows;
  try {
    const connection = by instanceof EntityManager ? await getConnection(by) : by;
    if (connection instanceof pg.Pool) return await withConnection(connection, run);
    return await run(connection);
  } catch (cause) {
    if (!isConnectionLoss(cause)) throw cause;
    throw new UnavailableError('The database cannot be reached', { cause });
  }
}

/** Returns the connection of a transaction of TypeORM, or the pool outside of one. */
function getConnection({ queryRunner, dataSource }: EntityManager) {
  if (!queryRunner) return getPool(dataSource);
  // After its release, the pool may have given its connection to another request.
  if (queryRunner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return queryRunner.connect() as Promise<pg.ClientBase>;
}

/**
 * Runs a statement for a group of requests, on a connection that commits keep (ADR-0134).
 * @throws UnavailableError when no connection is available
 */
export function queryForGroup<R extends pg.QueryResultRow>(
  pool: DatabasePool,
  statement: pg.QueryConfig,
): Promise<R[]> {
  return new Promise((resolve, reject) => {
    pool.acquireForCommit((cause, client) => {
      if (!client) return reject(toConnectError(cause));
      client.query<R>(statement, (error: Error | null, result) => {
        pool.releaseAfterCommit(client, isConnectionLoss(error) ? error : undefined);
        if (error) reject(error);
        else resolve(result.rows);
      });
    });
  });
}

/**
 * Awaits a query of the driver or of TypeORM in the same way as `query`.
 * @throws UnavailableError
 */
export async function awaitQuery<R>(result: Promise<R>): Promise<R> {
  try {
    return await result;
  } catch (cause) {
    if (!isConnectionLoss(cause)) throw cause;
    throw new UnavailableError('The database cannot be reached', { cause });
  }
}

/**
 * Runs work on one connection of the pool. The connection may break while no query runs on it; without an error
 * listener that would end the process.
 * @throws UnavailableError when no connection is available
 */
export async function withConnection<R>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<R>,
): Promise<R> {
  let broken: Error | undefined;
  const onError = (error: Error) => {
    broken = error;
  };
  const client = await checkOut(pool, onError);
  try {
    return await work(client);
  } catch (error) {
    if (isConnectionLoss(error)) broken = error;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** Runs the work of a transaction on a connection of the pool. Outside of production, it is then refused a second one. */
export function runInside<R>(pool: pg.Pool, work: () => Promise<R>): Promise<R> {
  return runInTransaction(pool instanceof DatabasePool && pool.isStrict ? pool : undefined, work);
}

/**
 * Checks out a connection. Uses a callback, so that the listener is attached before anything else runs: a server may
 * accept a connection and end it in the same packet, and after a promise resolves it would be too late.
 */
function checkOut(pool: pg.Pool, onError: (error: Error) => void): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((cause, client) => {
      if (!client) {
        reject(toConnectError(cause));
        return;
      }
      client.on('error', onError);
      resolve(client);
    });
  });
}

/** Converts the error of a caller that got no connection. */
export function toConnectError(cause: Error | undefined): Error {
  const isOwn = [UnavailableError, SecondConnectionError, FinishedRequestError].some(
    (own) => cause instanceof own,
  );
  if (cause && isOwn) return cause;
  return new UnavailableError('The database cannot be reached', { cause });
}

/**
 * Runs work in a transaction.
 * @throws RolledBackError when the work passed over the error of a statement: nothing was written
 * @throws UnavailableError when its commit would wait for a standby that is away, or when the connection is lost before the
 *   commit was sent: nothing was written
 */
export async function inTransaction<R>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<R>,
): Promise<R> {
  let isCommitting = false;
  if (pool instanceof DatabasePool) pool.assertConfirmsCommits();
  try {
    return await withConnection(pool, async (client) => {
      await client.query('begin');
      try {
        const result = await runInside(pool, () => work(client));
        isCommitting = true;
        await client.query('commit');
        return result;
      } catch (error) {
        if (!isConnectionLoss(error)) await client.query('rollback');
        throw error;
      }
    });
  } catch (cause) {
    if (isCommitting || !isConnectionLoss(cause)) throw cause;
    throw new UnavailableError('The database cannot be reached', { cause });
  }
}

/**
 * Returns the first row of a query at startup, before the process has checked any table.
 * @throws ConfigError when the tables do not exist yet
 */
export async function queryAtStartup<R extends pg.QueryResultRow>(
  pool: Pick<pg.Pool, 'query'>,
  text: string,
  ...values: string[]
): Promise<R | undefined> {
  try {
    return (await pool.query<R>(text, values)).rows[0];
  } catch (error) {
    if (findDatabaseError(error)?.code !== SQLSTATE.undefinedTable) throw error;
    throw new ConfigError('Tables are missing in the database: run inkpad migrate first.', {
      cause: error,
    });
  }
}

/** Delay before background work retries when the database was unavailable. */
export const DATABASE_RETRY_MS = 1_000;

/**
 * Tells whether the work can be retried later, because the database is unavailable, or whatever an `UnavailableError` is about:
 * the event store, a full queue, a record that is being merged.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  return error instanceof UnavailableError || isConnectionLoss(error) || isOutage(error);
}

/**
 * Tells whether the database lacks space, memory or connections, is read-only, or accepts no connection. Nothing was
 * written, unless the server ended the connection as well: a full disk of the log stops it (PANIC).
 */
export function isOutage(error: unknown): boolean {
  return isFailureToConnect(error) || isOutageState(findDatabaseError(error)?.code);
}

/**
 * Tells whether an error is transient: the database is unavailable, or others held locks for too long. Nothing was
 * written, and a retry is possible.
 */
export function isTransient(error: unknown): boolean {
  return isDatabaseUnavailable(error) || isRolledBackForRetry(error);
}

/** Tells whether the connection was lost. Broken sockets have no SQLSTATE. */
export function isConnectionLoss(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof QueryFailedError) return isConnectionLoss(error.driverError);
  // TypeORM gives back a connection that breaks between two statements; the next one then finds none.
  if (RELEASED_ERRORS.some((released) => error instanceof released)) return true;
  const databaseError = findDatabaseError(error);
  if (databaseError) return endsConnection(databaseError);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return NETWORK_ERROR_CODES.has(code) || BROKEN_CLIENT.test(error.message);
}

const RELEASED_ERRORS = [QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError];

/** Why a server is not reached, by the code of the error. */
export const UNREACHABLE = new Map([
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the name of the host is not known'],
  ['EAI_AGAIN', 'the name of the host cannot be looked up now'],
  ['ETIMEDOUT', 'no response'],
  ['EHOSTUNREACH', 'no way to the host'],
  ['ENETUNREACH', 'no way to its network'],
]);

const NETWORK_ERROR_CODES = new Set([...UNREACHABLE.keys(), 'ECONNRESET', 'EPIPE']);

/** Messages of the driver's errors that have no code. */
const BROKEN_CLIENT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Client was closed)/;
