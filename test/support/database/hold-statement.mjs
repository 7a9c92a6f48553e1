import pg from 'pg';

/**
 * With `--import`: before the statement that is called HOLD_STATEMENT, this process waits for the advisory lock
 * HOLD_LOCK. So a test can hold it there, and do what comes in between from elsewhere.
 */
const { HOLD_STATEMENT, HOLD_LOCK } = process.env;
const { query } = pg.Client.prototype;
const WAIT = `select pg_advisory_lock(${Number(HOLD_LOCK)}); select pg_advisory_unlock(${Number(HOLD_LOCK)})`;

pg.Client.prototype.query = function queryAfterLock(statement, ...rest) {
  const run = () => query.call(this, statement, ...rest);
  if (statement?.name !== HOLD_STATEMENT) return run();
  const callback = rest.at(-1);
  if (typeof callback !== 'function') return query.call(this, WAIT).then(run);
  return query.call(this, WAIT, (error) => (error ? callback(error) : run()));
};
