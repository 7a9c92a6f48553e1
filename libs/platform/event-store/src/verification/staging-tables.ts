import type pg from 'pg';

/** The schema of a rebuild's tables until they replace the live ones. */
export const STAGING = 'rebuild';
const REPLACED = 'rebuild_replaced';

/** A live table, such as `public.orders`. Its staging table has the same name in the schema STAGING. */
export type LiveTable = { schema: 'public' | 'es'; name: string };

export const CLAIMS: LiveTable = { schema: 'es', name: 'claims' };

const getLiveName = ({ schema, name }: LiveTable): string => `${schema}.${name}`;
const getStagingName = ({ name }: LiveTable): string => `${STAGING}.${name}`;

/**
 * Selects statements that give the staging table of `$1` what LIKE does not copy, in two steps: before it is filled,
 * and after.
 */
const DEFINITIONS = `
  select turn, statement from (
    select 1 as turn, format('alter table $staging set (%s)', array_to_string(reloptions, ', ')) as statement
    from pg_class where oid = $1::regclass and reloptions is not null
    union all
    select 1, format('alter table $staging owner to %I', pg_get_userbyid(relowner))
    from pg_class where oid = $1::regclass
    union all
    select 1, format('alter table $staging add constraint %I %s', conname, pg_get_constraintdef(oid))
    from pg_constraint where conrelid = $1::regclass and contype in ('p', 'u', 'x')
    union all
    select 2, regexp_replace(pg_get_indexdef(indexrelid), ' ON [^ ]+ USING ', ' ON $staging USING ')
    from pg_index i
    where indrelid = $1::regclass and not exists (select from pg_constraint where conindid = i.indexrelid)
    union all
    select 2, format('grant %s on $staging to %s', privilege_type,
      case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end)
    from pg_class, aclexplode(relacl) where pg_class.oid = $1::regclass
  ) definitions`;

/** Selects statements for what refers to the live tables themselves and not to their names; they run after the swap. */
const REFERENCES = `
  select format('create or replace view %s%s as %s', v.oid::regclass,
    ' with (' || array_to_string(v.reloptions, ', ') || ')', pg_get_viewdef(v.oid)) as statement
  from (
    select distinct r.ev_class from pg_depend d join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
      and d.refobjid = any ($1::regclass[])
  ) u join pg_class v on v.oid = u.ev_class and v.relkind = 'v'
  union all
  select pg_get_triggerdef(oid) from pg_trigger
  where tgrelid = any ($1::regclass[]) and not tgisinternal`;

/**
 * Creates empty staging tables with the definitions of the live ones. Drops those of an earlier rebuild.
 * @param client of the tables' owner
 */
export async function createStagingTables(
  client: pg.ClientBase,
  tables: LiveTable[],
): Promise<void> {
  await dropStagingTables(client);
  await client.query(`create schema ${STAGING}`);
  for (const table of tables) {
    await client.query(
      `create table ${getStagingName(table)} (like ${getLiveName(table)} including all excluding indexes)`,
    );
    for (const statement of await readDefinitions(client, table, 1)) await client.query(statement);
  }
}

export async function dropStagingTables(client: pg.ClientBase): Promise<void> {
  await client.query(`drop schema if exists ${STAGING}, ${REPLACED} cascade`);
}

/** Builds the indexes of staging tables after they were filled: that is faster than keeping indexes up to date. */
export async function indexStagingTables(
  client: pg.ClientBase,
  tables: LiveTable[],
): Promise<void> {
  for (const table of tables) {
    for (const statement of await readDefinitions(client, table, 2)) await client.query(statement);
    // The planner needs statistics when the table becomes the live one, and searches read from indexes alone only
    // after a vacuum.
    await client.query(`vacuum (analyze) ${getStagingName(table)}`);
  }
}

/**
 * Swaps the staging tables in, and drops the former live tables. Prepared statements continue to work: PostgreSQL looks
 * up the names again.
 * @param client in a transaction that holds the tables in access exclusive mode
 */
export async function swapTables(client: pg.ClientBase, tables: LiveTable[]): Promise<void> {
  const { rows: references } = await client.query<{ statement: string }>(REFERENCES, [
    tables.map(getLiveName),
  ]);
  await client.query(`create schema ${REPLACED}`);
  for (const table of tables) {
    await client.query(`alter table ${getLiveName(table)} set schema ${REPLACED}`);
    await client.query(`alter table ${getStagingName(table)} set schema ${table.schema}`);
  }
  for (const { statement } of references) await client.query(statement);
  // Without cascade: if anything still refers to them, the swap fails.
  for (const { name } of tables) await client.query(`drop table ${REPLACED}.${name}`);
  await client.query(`drop schema ${REPLACED}`);
  await client.query(`drop schema ${STAGING} cascade`);
  // The new version keeps processes from using what they have cached of the former rows.
  await client.query('update public.account_versions set version = version + 1');
}

async function readDefinitions(
  client: pg.ClientBase,
  table: LiveTable,
  phase: number,
): Promise<string[]> {
  const text = DEFINITIONS.replaceAll('$live', getLiveName(table)).replaceAll(
    '$staging',
    getStagingName(table),
  );
  const { rows } = await client.query<{ turn: number; statement: string }>(text, [
    getLiveName(table),
  ]);
  return rows.filter((one) => one.turn === phase).map(({ statement }) => statement);
}
