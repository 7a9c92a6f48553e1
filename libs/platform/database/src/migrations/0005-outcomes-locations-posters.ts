import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Row tables added here, beside those of the first migration. */
const NEW_ROW_TABLES = ['locations', 'posters'];
const ROW_TABLES = [
  'accounts',
  'cards',
  'rewards',
  'customers',
  'customer_cards',
  ...NEW_ROW_TABLES,
];

const OUTCOMES = `
-- answers kept under Idempotency-Keys, and the requests that are still to give one
create table es.outcomes (
  key bytea primary key check (octet_length(key) = 32),
  request bytea not null,
  holder uuid not null,
  held_until timestamptz not null,
  -- set while a commit to another engine is under way: only its end decides
  intent uuid,
  status int,
  answer bytea,
  expires_at timestamptz not null,
  check ((status is null) = (answer is null))
) with (fillfactor = 70);
create index outcomes_expiry on es.outcomes (expires_at);
create index outcomes_intent on es.outcomes (intent) where intent is not null;

/* Nothing but a wait is lost when the begin of a request is lost with the server: its commit finds no
   holder then and fails. So it need not wait for the disk. */
create function es.begin_outcome(p_key bytea, p_request bytea, p_holder uuid, p_seconds int,
                                 out state text, out status int, out answer bytea)
language plpgsql as $$
declare
  known es.outcomes;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into es.outcomes as o (key, request, holder, held_until, expires_at)
  values (p_key, p_request, p_holder, now() + make_interval(secs => p_seconds),
          now() + interval '24 hours')
  on conflict (key) do update
    set request = excluded.request, holder = excluded.holder, held_until = excluded.held_until,
        expires_at = excluded.expires_at, status = null, answer = null
    where o.intent is null
      and (o.expires_at <= now() or o.status is null and o.held_until <= now());
  if found then
    state := 'ours';
    return;
  end if;
  select * into known from es.outcomes o where o.key = p_key;
  if known.status is not null and known.request = p_request then
    state := 'done';
    status := known.status;
    answer := known.answer;
  elsif known.request <> p_request then
    state := 'other';
  else
    state := 'running';
  end if;
end $$;

/* p_streams: those that were really written; null: all. IP004 names the keys that others hold by now.
   The same holder may say it again: a write whose answer was lost is repeated as a whole. */
create function es.keep_outcomes(p_outcomes jsonb, p_streams text[]) returns void language plpgsql as $$
declare
  lost text;
begin
  if p_outcomes is null then return; end if;
  with asked as (
    select decode(x.k, 'hex') as key, x.o as holder, x.c as status, decode(x.b, 'hex') as answer
    from jsonb_to_recordset(p_outcomes) as x(k text, o uuid, s text, c int, b text)
    where p_streams is null or x.s = any (p_streams)
  ), kept as (
    update es.outcomes o set status = asked.status, answer = asked.answer, intent = null
    from asked where o.key = asked.key and o.holder = asked.holder
    returning o.key
  )
  select string_agg(encode(asked.key, 'hex'), ',') into lost from asked
  where not exists (select from kept where kept.key = asked.key);
  if lost is not null then
    raise exception 'taken over' using errcode = 'IP004', detail = lost;
  end if;
end $$;

/* A commit to another engine begins: from now on its end decides what is kept under the keys. */
create function es.bind_outcomes(p_outcomes jsonb, p_intent uuid) returns void language plpgsql as $$
declare
  lost text;
begin
  if p_outcomes is null then return; end if;
  with asked as (
    select decode(x.k, 'hex') as key, x.o as holder
    from jsonb_to_recordset(p_outcomes) as x(k text, o uuid)
  ), bound as (
    update es.outcomes o set intent = p_intent
    from asked where o.key = asked.key and o.holder = asked.holder and o.status is null
      and o.intent is null
    returning o.key
  )
  select string_agg(encode(asked.key, 'hex'), ',') into lost from asked
  where not exists (select from bound where bound.key = asked.key);
  if lost is not null then
    raise exception 'taken over' using errcode = 'IP004', detail = lost;
  end if;
end $$;
`;

const rowTable = (table: string) => `
create sequence ${table}_id as bigint;
create table ${table} (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  fold_version int not null,
  state jsonb not null
) with (fillfactor = 70);
create index ${table}_account on ${table} (account_id, id);
`;

const ROW_LOOKUPS = `
alter table posters
  add card_id bigint generated always as ((state ->> 'cardId')::bigint) stored,
  add slug text generated always as (state ->> 'slug') stored;
create index posters_card on posters (card_id);
create index posters_slug on posters (slug);
`;

const WRITE_ROWS = `
create or replace function es.write_rows(p_tables text[], p_rows jsonb, p_streams text[])
returns void language plpgsql as $$
begin
${ROW_TABLES.map(
  (table) => `
  if '${table}' = any (p_tables) then
    insert into ${table} as r (id, account_id, revision, hash, fold_version, state)
    select x.id, x.a, x.r, decode(x.h, 'hex'), x.v, x.st
    from jsonb_to_recordset(p_rows) as x(t text, s text, id bigint, a bigint, r bigint, h text, v int, st jsonb)
    where x.t = '${table}' and x.s = any (p_streams)
    on conflict (id) do update
      set revision = excluded.revision, hash = excluded.hash, fold_version = excluded.fold_version,
          state = excluded.state
      where r.revision < excluded.revision
        or r.revision = excluded.revision and r.fold_version < excluded.fold_version;
  end if;`,
).join('')}
end $$;
`;

/** As before, and the answers that tell of it. */
const COMMIT = `
drop function es.commit(jsonb, jsonb, text[], jsonb, jsonb, jsonb, boolean);
create function es.commit(p_heads jsonb, p_events jsonb, p_tables text[], p_rows jsonb,
                          p_claims jsonb, p_releases jsonb, p_atomic boolean,
                          p_outcomes jsonb)
returns text[] language plpgsql as $$
declare
  head record;
  won text[] := '{}';
  wanted int := jsonb_array_length(p_heads);
begin
  if wanted = 0 or jsonb_array_length(p_events) = 0 then
    raise exception 'an empty append is refused' using errcode = '22023';
  end if;

  -- One by one, by primary key: joined to a JSON list, a plan made while the table was small reads all
  -- of it, and sessions keep such plans. In the order of names, so that two calls cannot deadlock.
  for head in
    select * from jsonb_to_recordset(p_heads) as h(s text, a bigint, x bigint, p text, n int, h text)
    order by s
  loop
    if head.x = -1 then
      insert into es.streams (stream_id, account_id, revision, hash)
      values (head.s, head.a, head.n - 1, decode(head.h, 'hex'))
      on conflict do nothing;
    else
      update es.streams set revision = head.x + head.n, hash = decode(head.h, 'hex')
      where stream_id = head.s and revision = head.x and hash = decode(head.p, 'hex');
    end if;
    if found then won := won || head.s; end if;
  end loop;

  if p_atomic and cardinality(won) < wanted then
    raise exception 'a stream has moved' using errcode = 'IP001';
  end if;

  insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id,
                         data, meta, hash, recorded_at)
  select pg_current_xact_id(), nextval('es.global_seq'), e.s, e.r, e.id, e.t, e.v, e.a, e.d, e.m,
         decode(e.h, 'hex'), e.at
  from (
    select * from rows from (
      jsonb_to_recordset(p_events) as (s text, r bigint, id uuid, t text, v smallint, a bigint,
                                       d jsonb, m jsonb, h text, at timestamptz)
    ) with ordinality as x(s, r, id, t, v, a, d, m, h, at, ord)
    where x.s = any (won)
    order by x.ord
  ) e;

  perform es.take_claims(p_claims, p_releases);
  perform es.write_rows(p_tables, p_rows, won);
  if p_outcomes is not null then perform es.keep_outcomes(p_outcomes, won); end if;
  return won;
end $$;
`;

export class OutcomesLocationsPosters implements MigrationInterface {
  readonly name = 'OutcomesLocationsPosters0000000000005';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(OUTCOMES);
    for (const table of NEW_ROW_TABLES) await runner.query(rowTable(table));
    await runner.query(ROW_LOOKUPS);
    await runner.query(WRITE_ROWS);
    await runner.query(COMMIT);
  }

  /** Deliberately impossible: rows would be left behind their streams. */
  async down(): Promise<void> {
    throw new Error('kept answers are not taken back by a migration: restore a backup instead');
  }
}
