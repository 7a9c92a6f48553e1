-- The functions that write read models name every table, because PostgreSQL would plan statements that are composed at run
-- time anew for each commit. So they are generated, and a migration that adds a read model calls the procedure again.

create procedure es.create_read_model_writers() language plpgsql as $procedure$
declare
  -- A read model is a table with these columns; whatever else it has is generated from `state`.
  read_models text[] := array(
    select c.relname from pg_class c
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and 6 = (
      select count(*) from pg_attribute a
      where a.attrelid = c.oid and not a.attisdropped
        and a.attname in ('id', 'account_id', 'revision', 'hash', 'projection_version', 'state'))
    order by c.relname);
  -- A card's template is made of these: writing one raises the version of its account.
  template_tables text := '{accounts,cards,rewards}';
  inserts text;
begin
  select string_agg(format($insert$
  if %1$L = any (p_tables) then
    insert into %1$I as r (id, account_id, revision, hash, projection_version, state)
    select x.id, x.a, x.r, decode(x.h, 'hex'), x.v, x.st
    from jsonb_to_recordset(p_read_models)
      as x(t text, s text, id bigint, a bigint, r bigint, h text, v int, st jsonb)
    where x.t = %1$L and x.s = any (p_streams)
    on conflict (id) do update
      set revision = excluded.revision, hash = excluded.hash, projection_version = excluded.projection_version,
          state = excluded.state
      where r.revision < excluded.revision
        or r.revision = excluded.revision and r.projection_version < excluded.projection_version;
  end if;$insert$, name), '' order by name)
  into inserts from unnest(read_models) as name;

  -- Writes the read models of the given streams. A read model only moves forward, so that it may be written late, twice or
  -- out of order.
  execute format($create$
    create or replace function es.write_read_models(p_tables text[], p_read_models jsonb, p_streams text[])
    returns void language plpgsql as %L$create$, format($body$
begin%s
  if p_tables && %L::text[] then
    -- with its schema, because a rebuild has another search path
    perform public.raise_account_versions(array(
      select x.a from jsonb_to_recordset(p_read_models) as x(t text, s text, a bigint)
      where x.t = any (%2$L::text[]) and x.s = any (p_streams)));
  end if;
end $body$, inserts, template_tables));
end $procedure$;

call es.create_read_model_writers();
