import pg from 'pg';
import { QueryFailedError } from 'typeorm';
import { UnavailableError } from '#kernel/errors.js';
import type { LimitedStatement } from './database-client.js';
import { databaseErrorOf, endsConnection } from './sqlstate.js';

/** @throws when the database does not answer in time; what was asked is then given up */
export async function isAnswering(pool: pg.Pool, withinMs: number): Promise<void> {
  const statement: LimitedStatement = { text: 'select 1', query_timeout: withinMs };
  await pool.query(statement);
}

type Statement = { name?: string; text: string; values?: unknown[] };

/**
 * For everything that a request asks before it writes: a lost connection is then a 503 that says
 * nothing was written, and the caller may safely send the request again.
 * @throws UnavailableError
 */
export async function ask<R extends pg.QueryResultRow>(
  pool: pg.Pool,
  statement: Statement,
): Promise<R[]> {
  try {
    return await withConnection(pool, async (client) => (await client.query<R>(statement)).rows);
  } catch (cause) {
    if (!isConnectionLoss(cause)) throw cause;
    throw new UnavailableError('The database cannot be reached', { cause });
  }
}

/** The same for what TypeORM is asked. @throws UnavailableError */
export async function asked<R>(answer: Promise<R>): Promise<R> {
  try {
    return await answer;
  } catch (cause) {
    if (!isConnectionLoss(cause)) throw cause;
    throw new UnavailableError('The database cannot be reached', { cause });
  }
}

/**
 * One connection of the pool for one piece of work. A connection can break while nothing runs on it;
 * without a listener of its own that would end the process.
 * @throws UnavailableError when none is to be had
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

/**
 * The listener is there before anything else can run: a server that ends a connection which it has just
 * accepted says both in one piece, and a promise would be too late for the second.
 */
function checkOut(pool: pg.Pool, onError: (error: Error) => void): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((cause, client) => {
      if (!client) {
        reject(new UnavailableError('The database cannot be reached', { cause }));
        return;
      }
      client.on('error', onError);
      resolve(client);
    });
  });
}

export function inTransaction<R>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<R>,
): Promise<R> {
  return withConnection(pool, async (client) => {
    await client.query('begin');
    try {
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      if (!isConnectionLoss(error)) await client.query('rollback');
      throw error;
    }
  });
}

/** Nothing is wrong with the work itself: it is to be tried again when the database is back. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return error instanceof UnavailableError || isConnectionLoss(error);
}

/** Broken sockets have no SQLSTATE. */
export function isConnectionLoss(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (error instanceof QueryFailedError) return isConnectionLoss(error.driverError);
  const answered = databaseErrorOf(error);
  if (answered) return endsConnection(answered);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return NETWORK_FAULTS.has(code) || BROKEN_CLIENT.test(error.message);
}

const NETWORK_FAULTS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** How the driver words what has no code. */
const BROKEN_CLIENT =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Client was closed)/;
