import type { Pool } from 'pg';
import type { LogMeasures, Writer } from '../port/log-measures.js';

/** The age of the first event that the subscription has not read, whether or not it may read it yet. */
const SUBSCRIPTION_LAG = `
  select p.subscription, coalesce(extract(epoch from now() - e.recorded_at), 0)::float8 as seconds
  from es.positions p
  left join lateral (
    select recorded_at from es.events e
    where (e.tx, e.pos) > (split_part(p.position, ':', 1)::numeric::text::xid8,
      split_part(p.position, ':', 2)::bigint)
    order by e.tx, e.pos limit 1
  ) e on true`;

/**
 * All readers of the log wait for the oldest writing transaction anywhere on the server, prepared ones included. A commit
 * that waits for a synchronous standby is left out: to end it would confirm it without that standby.
 */
const OLDEST_WRITER = `
  select * from (
    select pid, coalesce(application_name, '') as name, extract(epoch from now() - xact_start)::float8 as seconds
    from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
      and wait_event is distinct from 'SyncRep'
    union all
    select 0, 'prepared transaction', extract(epoch from now() - prepared)::float8 from pg_prepared_xacts
  ) w where seconds is not null order by seconds desc limit 1`;

/** Measures the log in PostgreSQL. */
export async function measurePostgresLog(pool: Pool): Promise<LogMeasures> {
  const behind = await pool.query<{ subscription: string; seconds: number }>(SUBSCRIPTION_LAG);
  const writers = await pool.query<Writer>(OLDEST_WRITER);
  return {
    lagSeconds: new Map(behind.rows.map(({ subscription, seconds }) => [subscription, seconds])),
    oldestCommitSeconds: 0,
    oldestWriter: writers.rows[0],
  };
}
