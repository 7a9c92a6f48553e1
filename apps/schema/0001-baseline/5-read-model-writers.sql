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
  -- What a card is stamped by is made of these: writing one raises the version of its account.
  template_tables text := '{accounts,cards,locations,rewards}';
  inserts text;
  updates text;
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

  select string_agg(format($update$
    when %1$L then
      update %1$I set revision = last, hash = p_hash, projection_version = p_projection_version, state = p_state
      where id = p_id and (revision < last or revision = last and projection_version < p_projection_version);$update$,
    name), '' order by name)
  into updates from unnest(read_models) as name;

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

  -- Appends to one stream that exists, with its read model: what es.commit does, for values instead of JSON lists of one,
  -- which took most of PostgreSQL's time.
  execute format($create$
    create or replace function es.record(
      p_stream text, p_account bigint, p_revision bigint, p_before bytea, p_hash bytea,
      p_ids uuid[], p_types text[], p_versions smallint[], p_data text[], p_meta text[], p_hashes text[],
      p_times timestamptz[], p_claims jsonb, p_table text, p_id bigint, p_projection_version int, p_state jsonb,
      p_responses jsonb)
    returns text[] language plpgsql as %L$create$, format($body$
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
  return array[p_stream];
end $body$, updates, template_tables));
end $procedure$;

call es.create_read_model_writers();
