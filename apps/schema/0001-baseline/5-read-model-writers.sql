-- The functions that write read models name every table, because PostgreSQL would plan statements that are composed at run
-- time anew for each commit. So they are generated, and a migration that adds a read model calls the procedure again.

create procedure es.create_read_model_writers() language plpgsql as $procedure$
declare
  -- A read model is a table with these columns; whatever else it has is generated from `state`, or es.derive_<table> derives
  -- it from the state that is written.
  read_models text[] := array(
    select c.relname from pg_class c
    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and 6 = (
      select count(*) from pg_attribute a
      where a.attrelid = c.oid and not a.attisdropped
        and a.attname in ('id', 'account_id', 'revision', 'hash', 'projection_version', 'state'))
    order by c.relname);
  -- What a card is stamped by is made of these: writing one raises the version of its account.
  template_tables text := '{accounts,cards,locations,rewards}';
  inserts text;
  updates text;
begin
  select
    string_agg(format($insert$
  if %1$L = any (p_tables) then
    insert into %1$I as r (id, account_id, revision, hash, projection_version, state%2$s)
    select x.id, x.a, x.r, decode(x.h, 'hex'), x.v, x.st%3$s
    from jsonb_to_recordset(p_read_models)
      as x(t text, s text, id bigint, a bigint, r bigint, h text, v int, st jsonb)%4$s
    where x.t = %1$L and x.s = any (p_streams)
    on conflict (id) do update
      set revision = excluded.revision, hash = excluded.hash, projection_version = excluded.projection_version,
          state = excluded.state%5$s
      where r.revision < excluded.revision
        or r.revision = excluded.revision and r.projection_version < excluded.projection_version;
  end if;$insert$, name, columns, derived, ', ' || derive || '(x.st) d', replaced), '' order by name),
    string_agg(format($update$
    when %1$L then
      update %1$I r set revision = last, hash = p_hash, projection_version = p_projection_version, state = p_state%2$s%3$s
      where r.id = p_id
        and (r.revision < last or r.revision = last and r.projection_version < p_projection_version);$update$,
    name, assigned, ' from ' || derive || '(p_state) d'), '' order by name)
  into inserts, updates
  from unnest(read_models) as name left join lateral (
    select p.oid::regproc as derive, string_agg(', ' || c, '') as columns, string_agg(', d.' || c, '') as derived,
      string_agg(format(', %1$s = excluded.%1$s', c), '') as replaced,
      string_agg(format(', %1$s = d.%1$s', c), '') as assigned
    from pg_proc p, unnest(p.proargnames, p.proargmodes) as a(c, mode)
    where p.oid = to_regprocedure('es.derive_' || name || '(jsonb)') and a.mode = 't'
    group by p.oid) d on true;

  -- Writes the read models of the given streams. A read model only moves forward, so that it may be written late, twice or
  -- out of order.
  execute format($create$
    create or replace function es.write_read_models(p_tables text[], p_read_models jsonb, p_streams text[])
    returns void language plpgsql as %L$create$, format($body$
begin%s
  if p_tables && %L::text[] then
    perform public.raise_account_versions(array(
      select x.a from jsonb_to_recordset(p_read_models) as x(t text, s text, a bigint)
      where x.t = any (%2$L::text[]) and x.s = any (p_streams)));
  end if;
end $body$, inserts, template_tables));

  -- Appends to one stream that exists, with its read model: what es.commit does, for values instead of JSON lists of one,
  -- which took most of PostgreSQL's time.
  execute format($create$
    create or replace function es.record(
      p_stream text, p_account bigint, p_revision bigint, p_before bytea, p_hash bytea,
      p_events text[], p_claims jsonb, p_table text, p_id bigint, p_projection_version int, p_state jsonb,
      p_responses jsonb)
    returns boolean language plpgsql set enable_seqscan = off as %L$create$, format($body$
declare
  -- Of each event: id, type, version, data, meta, hash and time.
  n int := cardinality(p_events) / 7;
  last bigint := p_revision + n;
begin
  if n = 0 then raise exception 'an empty append is refused' using errcode = '22023'; end if;
  for i in 0..n - 1 loop
    insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id,
                           data, meta, hash, recorded_at)
    select pg_current_xact_id(), nextval('es.global_seq'), p_stream, p_revision + i + 1,
      p_events[7 * i + 1]::uuid, p_events[7 * i + 2], p_events[7 * i + 3]::smallint, p_account,
      p_events[7 * i + 4]::jsonb, p_events[7 * i + 5]::jsonb, decode(p_events[7 * i + 6], 'hex'),
      p_events[7 * i + 7]::timestamptz
    from es.events e where e.stream_id = p_stream and e.revision = p_revision + i and (i > 0 or e.hash = p_before);
    if not found then raise exception 'a stream has moved' using errcode = 'IP001'; end if;
  end loop;
  if p_claims is not null then perform es.take_claims(p_claims, null); end if;
  case p_table%s
  end case;
  if not found then
    perform es.write_read_models(array[p_table], jsonb_build_array(jsonb_build_object(
      't', p_table, 's', p_stream, 'id', p_id, 'a', p_account, 'r', last, 'h', encode(p_hash, 'hex'),
      'v', p_projection_version, 'st', p_state)), array[p_stream]);
  end if;
  if p_table = any (%L::text[]) then perform public.raise_account_versions(array[p_account]); end if;
  if p_responses is not null then perform es.save_responses(p_responses, array[p_stream]); end if;
  return true;
end $body$, updates, template_tables));
end $procedure$;

call es.create_read_model_writers();
