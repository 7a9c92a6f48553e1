import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Every event-sourced context has one table of rows, all of the same shape. */
const ROW_TABLES = ['accounts', 'cards', 'rewards', 'customers', 'customer_cards'];

const EVENT_STORE = `
create schema es;
create sequence es.global_seq as bigint cache 1;
create sequence redemptions_id as bigint;

create table es.streams (
  stream_id text primary key,
  account_id bigint not null,
  revision bigint not null check (revision >= 0),
  hash bytea not null check (octet_length(hash) = 32)
) with (fillfactor = 70);

create table es.events (
  tx xid8 not null,
  pos bigint not null,
  stream_id text not null,
  revision bigint not null,
  event_id uuid not null,
  type text not null,
  schema_version smallint not null,
  account_id bigint not null,
  data jsonb not null,
  meta jsonb not null,
  hash bytea not null check (octet_length(hash) = 32),
  recorded_at timestamptz not null,
  primary key (stream_id, revision)
);
create unique index events_event_id on es.events (event_id);
create index events_all on es.events (tx, pos);
create index events_time on es.events using brin (recorded_at);

create function es.refuse() returns trigger language plpgsql as $$
begin
  raise exception 'events are never changed or removed (% refused)', tg_op using errcode = 'IP003';
end $$;
create trigger events_are_final before update or delete or truncate on es.events
  for each statement execute function es.refuse();
-- always: replication roles would otherwise pass it by
alter table es.events enable always trigger events_are_final;

create table es.claims (
  account_id bigint not null,
  kind text not null,
  value bytea not null,
  stream_id text not null,
  revision bigint not null,
  primary key (account_id, kind, value)
);
create index claims_stream on es.claims (stream_id);

create table es.checkpoints (
  subscription text primary key,
  position text not null,
  updated_at timestamptz not null default now()
);

create table personal_keys (
  subject_id bigint primary key,
  wrapped bytea not null,
  created_at timestamptz not null default now()
);
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
alter table rewards
  add card_id bigint generated always as ((state ->> 'cardId')::bigint) stored;
create index rewards_card on rewards (card_id);

alter table customer_cards
  add customer_id bigint generated always as ((state ->> 'customerId')::bigint) stored,
  add card_id bigint generated always as ((state ->> 'cardId')::bigint) stored,
  add code text generated always as (state ->> 'code') stored,
  add uuid uuid generated always as ((state ->> 'uuid')::uuid) stored;
create index customer_cards_customer on customer_cards (customer_id, id);
create index customer_cards_card on customer_cards (card_id);
create index customer_cards_code on customer_cards (account_id, code);
create index customer_cards_uuid on customer_cards (uuid);

create extension if not exists pg_trgm;
create extension if not exists btree_gin;
alter table customers
  add search_text text generated always as (state ->> 'searchText') stored,
  add phone_digits text generated always as (state ->> 'phoneDigits') stored;
create index customers_search on customers using gin (account_id, search_text gin_trgm_ops);
create index customers_phone on customers using gin (account_id, phone_digits gin_trgm_ops);
create index customers_references on customers
  using gin (account_id, (state -> 'externalReferences') jsonb_path_ops);
`;

/** Uniqueness. IP002 names the kinds that others hold; releases come first, so that a value can move. */
const TAKE_CLAIMS = `
create function es.take_claims(p_claims jsonb, p_releases jsonb) returns void language plpgsql as $$
declare
  taken text;
begin
  if p_releases is not null then
    delete from es.claims c
    using jsonb_to_recordset(p_releases) as x(a bigint, k text, v text, s text)
    where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s;
  end if;
  if p_claims is not null then
    with asked as (
      select * from jsonb_to_recordset(p_claims) as x(a bigint, k text, v text, s text, r bigint)
    ), given as (
      insert into es.claims (account_id, kind, value, stream_id, revision)
      select a, k, decode(v, 'hex'), s, r from asked order by a, k, v
      on conflict do nothing
      returning account_id, kind, value
    )
    select string_agg(distinct asked.k, ',') into taken from asked
    where not exists (
      select from given
      where given.account_id = asked.a and given.kind = asked.k and given.value = decode(asked.v, 'hex')
    );
    if taken is not null then
      raise exception 'taken' using errcode = 'IP002', detail = taken;
    end if;
  end if;
end $$;
`;

/** Rows only ever move forward, so that they may be written late, twice or out of order. */
const WRITE_ROWS = `
create function es.write_rows(p_tables text[], p_rows jsonb, p_streams text[])
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

/**
 * One call is one commit. The appends are its first writes: anything written earlier would take the
 * transaction id too soon, and revision n+1 could sort before n for readers of the whole log.
 *
 * p_atomic false: the heads are independent, and those that lost their race are simply not returned.
 * p_atomic true: all or nothing; IP001 says that a stream moved, IP002 that a claim is taken.
 */
const COMMIT = `
create function es.commit(p_heads jsonb, p_events jsonb, p_tables text[], p_rows jsonb,
                          p_claims jsonb, p_releases jsonb, p_atomic boolean)
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
  return won;
end $$;
`;

export class EventStore implements MigrationInterface {
  readonly name = 'EventStore0000000000001';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(EVENT_STORE);
    for (const table of ROW_TABLES) await runner.query(rowTable(table));
    await runner.query(ROW_LOOKUPS);
    await runner.query(TAKE_CLAIMS);
    await runner.query(WRITE_ROWS);
    await runner.query(COMMIT);
  }

  /** Deliberately impossible: events are never dropped by a tool. */
  async down(): Promise<void> {
    throw new Error('the event store is not taken down by a migration: restore a backup instead');
  }
}
