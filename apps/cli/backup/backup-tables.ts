import type pg from 'pg';
import { createPositionSql } from '#platform/event-store/port/position.js';
import { TX } from '../logged-positions.js';

/**
 * Lists the tables that no backup has: those that the service fills again by itself (images, the progress of phone
 * numbers), and those that must not come back (maintenance, which is over, and records of other backups).
 */
const EXCLUDED_TABLES = [
  'public.backups',
  'public.maintenance',
  'public.migrations',
  'public.phone_normalizations',
  'public.card_images',
];

/** @property name with its schema; @property columns those that are not computed from others */
export type Table = { name: string; columns: string[] };

/** Parents of partitions stand for all their days. Other tables in these schemas belong to somebody else. */
const TABLES_SQL = `
  select n.nspname || '.' || c.relname as name,
    array(select a.attname::text from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
          order by a.attnum) as columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('es', 'public') and c.relkind in ('r', 'p') and not c.relispartition
    and c.relowner = (select relowner from pg_class where oid = 'es.events'::regclass)
    and n.nspname || '.' || c.relname <> all ($1)
  order by 1`;

export async function listTables(client: pg.ClientBase): Promise<Table[]> {
  return (await client.query<Table>(TABLES_SQL, [EXCLUDED_TABLES])).rows;
}

/**
 * Transaction ids mean nothing on another server: there the events stand in the same order before all that it writes
 * itself, as after `rebase-positions`. The number in `history` is the event's place in the log.
 */
const COLUMN_EXPRESSIONS: Record<string, Record<string, string>> = {
  'es.events': { tx: `'${TX}'::xid8`, pos: 'row_number() over (order by t.tx, t.pos)' },
  'public.audit_log': { tx: `'${TX}'::xid8` },
  'public.history': { position: createPositionSql(TX, 't.seq + 1') },
};

export function createCopyOutSql(
  { name, columns }: Table,
  positions: 'of any server' | 'as they are',
): string {
  const instead = positions === 'of any server' ? (COLUMN_EXPRESSIONS[name] ?? {}) : {};
  const values = columns.map((column) => instead[column] ?? `t.${quoteIdentifier(column)}`);
  return `copy (select ${values.join(', ')} from ${quoteName(name)} t) to stdout`;
}

export function createCopyInSql({ name, columns }: Table): string {
  return `copy ${quoteName(name)} (${columns.map(quoteIdentifier).join(', ')}) from stdin`;
}

/** Runs work on a table of ours whose triggers would refuse it. Within a transaction, which alone must see that. */
export async function withoutTriggers(
  client: pg.ClientBase,
  name: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const { rows } = await client.query<{ trigger: string; enabled: 'A' | 'O' }>(
    `select tgname::text as trigger, tgenabled as enabled from pg_trigger
     where tgrelid = $1::regclass and not tgisinternal and tgenabled in ('A', 'O')`,
    [quoteName(name)],
  );
  const alter = (change: string, trigger: string) =>
    client.query(`alter table ${quoteName(name)} ${change} trigger ${quoteIdentifier(trigger)}`);
  for (const { trigger } of rows) await alter('disable', trigger);
  await work();
  for (const { trigger, enabled } of rows)
    await alter(enabled === 'A' ? 'enable always' : 'enable', trigger);
}

/** Quotes a name, so that it is safe in SQL, whatever a manifest says. */
export function quoteName(name: string): string {
  return name.split('.').map(quoteIdentifier).join('.');
}

const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Sorts tables, each after those that it refers to. */
export async function sortByReferences<T extends Table>(
  client: pg.ClientBase,
  tables: T[],
): Promise<T[]> {
  const { rows } = await client.query<{ from: string; to: string }>(
    `select fn.nspname || '.' || f.relname as from, tn.nspname || '.' || t.relname as to
     from pg_constraint c
     join pg_class f on f.oid = c.conrelid join pg_namespace fn on fn.oid = f.relnamespace
     join pg_class t on t.oid = c.confrelid join pg_namespace tn on tn.oid = t.relnamespace
     where c.contype = 'f' and c.conrelid <> c.confrelid`,
  );
  const ordered: T[] = [];
  for (let open = tables; open.length > 0;) {
    const waiting = new Set(open.map(({ name }) => name));
    const next = open.filter(
      ({ name }) => !rows.some(({ from, to }) => from === name && waiting.has(to)),
    );
    if (next.length === 0) throw new Error('tables refer to each other in a circle');
    ordered.push(...next);
    open = open.filter((table) => !next.includes(table));
  }
  return ordered;
}

/** Reads the sequences by name. They are read after the tables, so none is behind an id that is in use. */
export async function readSequences(client: pg.ClientBase): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `select schemaname || '.' || sequencename as name, last_value::text as value
     from pg_sequences where schemaname in ('es', 'public') and last_value is not null order by 1`,
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** Lists the days (YYYYMMDD) for which there are partitions. */
export async function listPartitionDays(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ day: string }>(
    `select distinct right(c.relname, 8) as day from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where c.relnamespace = 'public'::regnamespace and c.relname ~ '^webhook_[a-z]+_[0-9]{8}$' order by 1`,
  );
  return rows.map(({ day }) => day);
}
