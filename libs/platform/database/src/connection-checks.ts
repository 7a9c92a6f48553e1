import type pg from 'pg';
import { StandbyError, type DatabaseClient, type LimitedStatement } from './database-client.js';

const INTERVAL_MS = 1_000;
/** Of a connection that only listens: what it may miss is found by polling. */
export const LISTENING_INTERVAL_MS = 5_000;
const TIMEOUT_MS = 5_000;
/** Time after which the server ends an unchecked session. */
const IDLE_TIMEOUT_MS = 20_000;

const CHECK: LimitedStatement = {
  text: `select set_config('idle_session_timeout', '${IDLE_TIMEOUT_MS}', false), pg_is_in_recovery() as is_standby`,
};

/** Sends a query on a checked connection, and returns its rows. */
export type CheckedQuery = <R extends pg.QueryResultRow>(
  statement: LimitedStatement,
) => Promise<R[]>;

/**
 * Checks a connection that only listens or holds a lock at intervals, so that its loss is emitted as an `error` like any
 * other: the server is silent, or has become a standby (ADR-0099). The server ends the session when no check arrives: the
 * kernel or a proxy may keep the connection of a stopped or isolated process alive for ever, and with it the lock.
 * @returns how to send queries on the connection from now on: in turn with the checks, because the driver runs one query
 * at a time and its next major version refuses a second one
 */
export function startChecks(client: DatabaseClient, intervalMs = INTERVAL_MS): CheckedQuery {
  let lastQuery: Promise<unknown> = Promise.resolve();
  const query: CheckedQuery = async <R extends pg.QueryResultRow>(statement: LimitedStatement) => {
    // A check waits for the query before it, so that none may take longer than a check to notice a silent server.
    const result = lastQuery.then(() =>
      client.query<R>({ query_timeout: TIMEOUT_MS, ...statement }),
    );
    lastQuery = result.catch(() => undefined);
    return (await result).rows;
  };
  let isChecking = false;
  const check = () => {
    if (isChecking) return;
    isChecking = true;
    query<{ is_standby: boolean }>(CHECK)
      .then(([row]) => {
        if (row?.is_standby) client.connection.stream.destroy(new StandbyError());
        isChecking = false;
      })
      // The client emits the error to its listeners as well.
      .catch(() => clearInterval(timer));
  };
  const timer = setInterval(check, intervalMs);
  timer.unref();
  client.once('end', () => clearInterval(timer));
  check();
  return query;
}
