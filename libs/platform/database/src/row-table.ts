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
${WRITE_ROWS}
${RECORD}`;
}

const FROM_ROW_TABLES = `from pg_class c
  where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and 6 = (
    select count(*) from pg_attribute a
    where a.attrelid = c.oid and not a.attisdropped
      and a.attname in ('id', 'account_id', 'revision', 'hash', 'fold_version', 'state'));`;

/** What a card template is made from: a write to one of these raises the version of its store. */
const OF_TEMPLATES = `'{accounts,cards,rewards}'::text[]`;

/**
 * Makes `es.write_rows` anew for every table of the shape above. It names each of them, because statements that are
 * composed when they run would be planned at every commit.
 */
export const WRITE_ROWS = `
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
  ${FROM_ROW_TABLES}
  execute format(
    'create or replace function es.write_rows(p_tables text[], p_rows jsonb, p_streams text[])
     returns void language plpgsql as %L', 'begin' || writes || $raise$
  if p_tables && ${OF_TEMPLATES} then
    perform public.raise_account_versions(array(
      select x.a from jsonb_to_recordset(p_rows) as x(t text, s text, a bigint)
      where x.t = any (${OF_TEMPLATES}) and x.s = any (p_streams)));
  end if;
end$raise$);
end $do$;
`;

/**
 * Makes `es.record` anew for every table of the shape above: what `es.commit` does for one stream that exists, with
 * its row, where nothing else is committed. Values instead of JSON lists: most of what such a commit took of
 * PostgreSQL was for lists of one.
 */
export const RECORD = `
do $do$
declare
  updates text;
begin
  select string_agg(format($write$
    when %1$L then
      update %1$I set revision = last, hash = p_hash, fold_version = p_fold, state = p_state
      where id = p_id and (revision < last or revision = last and fold_version < p_fold);$write$, c.relname), '' order by c.relname)
  into updates
  ${FROM_ROW_TABLES}
  execute format($function$
    create or replace function es.record(
      p_stream text, p_account bigint, p_revision bigint, p_before bytea, p_hash bytea,
      p_ids uuid[], p_types text[], p_versions smallint[], p_data text[], p_meta text[], p_hashes text[],
      p_times timestamptz[], p_table text, p_id bigint, p_fold int, p_state jsonb, p_outcomes jsonb)
    returns text[] language plpgsql as %L$function$, $body$
declare
  n int := cardinality(p_ids);
  last bigint := p_revision + n;
begin
  if n = 0 then raise exception 'an empty append is refused' using errcode = '22023'; end if;
  update es.streams set revision = last, hash = p_hash
  where stream_id = p_stream and revision = p_revision and hash = p_before;
  if not found then raise exception 'a stream has moved' using errcode = 'IP001'; end if;
  for i in 1..n loop
    insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id,
                           data, meta, hash, recorded_at)
    values (pg_current_xact_id(), nextval('es.global_seq'), p_stream, p_revision + i, p_ids[i], p_types[i],
            p_versions[i], p_account, p_data[i]::jsonb, p_meta[i]::jsonb, decode(p_hashes[i], 'hex'),
            p_times[i]);
  end loop;
  case p_table$body$ || updates || $body$
  end case;
  if not found then
    perform es.write_rows(array[p_table], jsonb_build_array(jsonb_build_object(
      't', p_table, 's', p_stream, 'id', p_id, 'a', p_account, 'r', last, 'h', encode(p_hash, 'hex'),
      'v', p_fold, 'st', p_state)), array[p_stream]);
  end if;
  if p_table = any (${OF_TEMPLATES}) then perform public.raise_account_versions(array[p_account]); end if;
  if p_outcomes is not null then perform es.keep_outcomes(p_outcomes, array[p_stream]); end if;
  return array[p_stream];
end $body$);
end $do$;
`;
