/**
 * For migrations: the table and the sequence of an aggregate's rows. Every such table has this shape, which
 * `es.write_rows` writes and `Rows` reads; what is searched, or read by other contexts, is a generated column.
 * @param columns generated ones, by name: `{ card_id: "bigint generated always as (…) stored" }`
 */
export function createRowTable(table: string, columns: Record<string, string> = {}): string {
  const more = Object.entries(columns).map(([name, column]) => `,\n  ${name} ${column}`);
  return `
create sequence ${table}_id as bigint;
create table ${table} (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  fold_version int not null,
  state jsonb not null${more.join('')}
) with (fillfactor = 70);
create index ${table}_account on ${table} (account_id, id);
create index ${table}_fold on ${table} (fold_version);
${WRITE_ROWS}`;
}

/**
 * Makes `es.write_rows` anew for every table of the shape above. It names each of them, because statements that are
 * composed when they run would be planned at every commit.
 */
const WRITE_ROWS = `
do $do$
declare
  writes text;
begin
  select string_agg(format($write$
  if %1$L = any (p_tables) then
    insert into %1$I as r (id, account_id, revision, hash, fold_version, state)
    select x.id, x.a, x.r, decode(x.h, 'hex'), x.v, x.st
    from jsonb_to_recordset(p_rows) as x(t text, s text, id bigint, a bigint, r bigint, h text, v int, st jsonb)
    where x.t = %1$L and x.s = any (p_streams)
    on conflict (id) do update
      set revision = excluded.revision, hash = excluded.hash, fold_version = excluded.fold_version,
          state = excluded.state
      where r.revision < excluded.revision
        or r.revision = excluded.revision and r.fold_version < excluded.fold_version;
  end if;$write$, c.relname), '' order by c.relname)
  into writes
  from pg_class c
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and 6 = (
    select count(*) from pg_attribute a
    where a.attrelid = c.oid and not a.attisdropped
      and a.attname in ('id', 'account_id', 'revision', 'hash', 'fold_version', 'state'));
  execute format(
    'create or replace function es.write_rows(p_tables text[], p_rows jsonb, p_streams text[])
     returns void language plpgsql as %L', 'begin' || writes || E'\\nend');
end $do$;
`;
