import type pg from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { queryAtStartup } from '#platform/database/connection.js';
import type { PlainTable } from '../read-models/read-models.js';

/** Marks, in the table of positions, that all positions are those of EventStoreDB's log. */
export const MOVED_TO_EVENTSTOREDB = 'positions:eventstoredb';
/** Marks, in the table of positions, that the history was moved from EventStoreDB back to PostgreSQL. */
export const MOVED_TO_POSTGRES = 'positions:postgres';

const selectForeignPositions = (plainTables: PlainTable[]) => `
  with server as (select pg_snapshot_xmax(pg_current_snapshot()) as next)
  select
    exists (select from es.positions where subscription = $1)
      or (exists (select from es.identity where linked_at is not null)
          and not exists (select from es.events)
          and not exists (select from es.positions where subscription = $2)) as moved,
    coalesce((select e.tx from es.events e order by e.tx desc, e.pos desc limit 1) >= next, false)
      or exists (select from es.positions
                 where split_part(position, ':', 1)::numeric >= next::text::numeric)
      ${plainTables.map(checkBeyondServerSql).join('')} as foreign
  from server`;

function checkBeyondServerSql({ table, positionColumn }: PlainTable): string {
  if (positionColumn === undefined) return '';
  return `or exists (select from ${table}
                 where split_part(${positionColumn}, ':', 1)::numeric > next::text::numeric)`;
}

/**
 * Refuses positions of another server. A logical dump copies transaction ids to a server that counts its own: readers
 * would wait for the restored events, and new ones would sort before them.
 * @throws ConfigError
 */
export async function refuseForeignPositions(
  pool: pg.Pool,
  plainTables: PlainTable[],
): Promise<void> {
  const positions = await queryAtStartup<{ moved: boolean; foreign: boolean }>(
    pool,
    selectForeignPositions(plainTables),
    MOVED_TO_EVENTSTOREDB,
    MOVED_TO_POSTGRES,
  );
  if (positions?.moved) {
    throw new ConfigError(
      'The history of this database is in KurrentDB (EventStoreDB): set EVENT_STORE_URL, or move it back with inkpad move-events --to postgres.',
    );
  }
  if (positions?.foreign) {
    throw new ConfigError(
      'The events in this database carry positions of another PostgreSQL server, as after a restored dump: run inkpad rebase-positions once, then start again.',
    );
  }
}

const SELECT_LOCAL_HISTORY = `
  select from (
    select exists (select from es.positions where subscription = $1) as here,
      exists (select from es.positions where subscription = $2) as moved,
      exists (select from es.events) as begun
  ) history
  where here or (begun and not moved)`;

/**
 * Refuses to continue in EventStoreDB a history that is in PostgreSQL.
 * @throws ConfigError
 */
export async function refuseHistoryInPostgres(pool: pg.Pool): Promise<void> {
  if (await queryAtStartup(pool, SELECT_LOCAL_HISTORY, MOVED_TO_POSTGRES, MOVED_TO_EVENTSTOREDB)) {
    throw new ConfigError(
      'The history of this database is in PostgreSQL: unset EVENT_STORE_URL, or move the history with inkpad move-events --to eventstoredb.',
    );
  }
}
