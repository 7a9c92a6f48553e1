-- The history and how it is written. One call of es.commit is one commit. Errors have SQLSTATEs of their own: IP001, a
-- stream has moved; IP002, a claim is taken (the detail names its kinds); IP003, something final was to be changed; IP004, an
-- idempotency key was taken over by another request (the detail names the holders that lost it); IP005, a cap is reached.

-- The id of this database.
create table es.identity (
  singleton boolean primary key default true check (singleton),
  database uuid not null default gen_random_uuid(),
  -- since when an EventStoreDB carries the same id; a database that is restored keeps both
  linked_at timestamptz
);

create sequence es.global_seq as bigint;

create function es.refuse_event_change() returns trigger
language plpgsql as $$
begin
  raise exception 'events are never changed or removed (% refused)', tg_op using errcode = 'IP003';
end $$;

-- The events, never changed. The primary key lets only one commit continue a stream after a revision (ADR-0152). A reader
-- goes by (tx, pos) and stops below the oldest running transaction, so that it misses none. The table `history` finds events
-- by their ids.
create table es.events (
  tx xid8 not null,
  pos bigint not null,
  stream_id text not null,
  revision bigint not null check (revision >= 0),
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
create index events_all on es.events (tx, pos);
create trigger events_are_final before update or delete or truncate on es.events
  for each statement execute function es.refuse_event_change();
alter table es.events enable always trigger events_are_final;

-- What must be unique in a store, such as an external reference: `value` is a keyed hash.
create table es.claims (
  account_id bigint not null,
  kind text not null,
  value bytea not null,
  stream_id text not null,
  revision bigint not null,
  primary key (account_id, kind, value)
);
create index claims_stream on es.claims (stream_id);

-- Makes values unique. IP002 names the kinds that others hold. Releases come first, so that a value can move.
create function es.take_claims(p_claims jsonb, p_releases jsonb) returns void
language plpgsql as $$
declare
  taken text;
begin
  if p_releases is not null then
    delete from es.claims c
    using jsonb_to_recordset(p_releases) as x(a bigint, k text, v text, s text)
    where c.account_id = x.a and c.kind = x.k and c.value = decode(x.v, 'hex') and c.stream_id = x.s;
  end if;
  if p_claims is not null then
    with requested as (
      select * from jsonb_to_recordset(p_claims) as x(a bigint, k text, v text, s text, r bigint)
    ), inserted as (
      insert into es.claims (account_id, kind, value, stream_id, revision)
      select a, k, decode(v, 'hex'), s, r from requested order by a, k, v
      on conflict do nothing
      returning account_id, kind, value
    )
    select string_agg(distinct requested.k, ',') into taken from requested
    where not exists (
      select from inserted
      where inserted.account_id = requested.a and inserted.kind = requested.k and inserted.value = decode(requested.v, 'hex')
    );
    if taken is not null then
      raise exception 'taken' using errcode = 'IP002', detail = taken;
    end if;
  end if;
end $$;

-- How far each subscription has followed the log.
create table es.checkpoints (
  subscription text primary key,
  position text not null,
  updated_at timestamptz not null default now()
);

-- Events that a subscription could not process, each with the later ones of its store: they are processed in this order,
-- and the other stores go on.
create table es.postponed_events (
  subscription text not null,
  account_id bigint not null,
  seq bigint generated always as identity,
  stream_id text not null,
  revision bigint not null,
  failures int not null,
  retry_at timestamptz not null,
  primary key (subscription, account_id, seq)
);

-- Which part of the log counts as recorded by which time.
create table es.log_times (
  n bigint primary key,
  -- the last event of this part of the log; its place stays the same when the log moves to another engine
  stream_id text not null,
  revision bigint not null,
  -- when that event counts, in ms since 1970; it never falls
  at_ms bigint not null,
  -- without events of its own: it says that later ones count from this time at the earliest
  quiet boolean not null
);
create index log_times_at on es.log_times (at_ms, n);

-- Adds an entry after number p_n - 1, unless another process has already added one. A quiet entry replaces the
-- quiet entry before it, so that repeated requests take no space.
create function es.add_log_time(
  p_n bigint, p_stream text, p_revision bigint, p_at_ms bigint, p_quiet boolean
) returns boolean
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(727005);
  if exists (select from es.log_times where n >= p_n) then return false; end if;
  if p_quiet then delete from es.log_times where n = p_n - 1 and quiet; end if;
  insert into es.log_times (n, stream_id, revision, at_ms, quiet)
  values (p_n, p_stream, p_revision, p_at_ms, p_quiet);
  return true;
end $$;

-- What a commit to another engine is about to do, so that any process can finish it.
create table es.intents (
  id uuid primary key,
  content json not null,
  leased_until timestamptz not null,
  created_at timestamptz not null default now(),
  -- whoever may give the intent up
  holder uuid not null,
  -- its process
  process int,
  -- the record that an intent is about to begin, where their number is limited
  cap text,
  cap_id bigint,
  -- claims that moved to another stream when the intent was opened, to be moved back if it is abandoned
  moved jsonb,
  -- why the rest of it cannot be written until somebody repairs a stream; it is tried again once a day
  damage text
);
create index intents_cap on es.intents (cap)
  where cap is not null;
create index intents_lease on es.intents (leased_until);
create index intents_process on es.intents (process)
  where process is not null;

-- Waits while a backup looks up the end of a log that is in another engine (ADR-0060). What an event needs in this
-- database is written before the event, so everything up to that end has it.
create function es.wait_for_backup() returns trigger
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(727093);
  return null;
end $$;
create trigger intents_wait_for_backup before insert on es.intents
  for each statement execute function es.wait_for_backup();

-- Streams that a commit to several existing ones is going to write: no second such commit may begin meanwhile.
create table es.intent_streams (
  stream_id text primary key,
  intent uuid not null references es.intents (id) on delete cascade
);
create index intent_streams_intent on es.intent_streams (intent);

-- Responses stored under Idempotency-Keys, and the requests that are still to give one.
create table es.stored_responses (
  key bytea primary key check (octet_length(key) = 32),
  request_hash bytea not null,
  holder uuid not null,
  -- its process
  process int,
  leased_until timestamptz not null,
  -- set while a commit to another engine is under way: only its end decides
  intent uuid,
  status int,
  response bytea,
  expires_at timestamptz not null,
  check ((status is null) = (response is null))
) with (fillfactor = 70);
create index stored_responses_expiry on es.stored_responses (expires_at);
create index stored_responses_intent on es.stored_responses (intent)
  where intent is not null;

-- Claims those of some keys that nobody has used, as nearly all are, and returns the holders. In the order of the keys, so
-- that two such calls cannot deadlock. Neither reads whole tables nor waits for a commit that is about to store a response.
create function es.claim_new_idempotency_keys(
  p_keys bytea[], p_request_hashes bytea[], p_holders uuid[], p_seconds int, p_process int
) returns setof uuid
language plpgsql set enable_seqscan = off as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  return query
    insert into es.stored_responses (key, request_hash, holder, process, leased_until, expires_at)
    select c.key, c.request_hash, c.holder, p_process, now() + make_interval(secs => p_seconds),
           now() + interval '24 hours'
    from unnest(p_keys, p_request_hashes, p_holders) as c(key, request_hash, holder)
    where (select o.key from es.stored_responses o where o.key = c.key) is null
    order by c.key
    on conflict (key) do nothing
    returning stored_responses.holder;
end $$;

create function es.claim_idempotency_key(
  p_key bytea, p_request_hash bytea, p_holder uuid, p_seconds int, p_process int, out state text, out status int, out response bytea
) returns record
language plpgsql as $$
declare
  existing es.stored_responses;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into es.stored_responses as o (key, request_hash, holder, process, leased_until, expires_at)
  values (p_key, p_request_hash, p_holder, p_process, now() + make_interval(secs => p_seconds),
          now() + interval '24 hours')
  on conflict (key) do update
    set request_hash = excluded.request_hash, holder = excluded.holder, process = excluded.process,
        leased_until = excluded.leased_until, expires_at = excluded.expires_at, status = null, response = null
    where o.intent is null
      and (o.expires_at <= now()
        or o.status is null and (o.leased_until <= now() or not es.is_process_alive(o.process)));
  if found then
    state := 'ours';
    return;
  end if;
  select * into existing from es.stored_responses o where o.key = p_key;
  if existing.status is not null and existing.request_hash = p_request_hash then
    state := 'done';
    status := existing.status;
    response := existing.response;
  elsif existing.request_hash <> p_request_hash then
    state := 'other';
  else
    state := 'running';
  end if;
end $$;

-- Takes the claims of intents that are being opened, and binds their responses to them. No two may claim the same value.
-- Always by index: a plan made while a table was small reads all of it, and sessions keep such plans.
create function es.bind_intents(p_ids uuid[], p_contents text[]) returns void
language plpgsql set enable_seqscan = off as $$
declare
  losers text;
begin
  perform es.take_claims(jsonb_agg(claim), null)
  from unnest(p_contents) as content, jsonb_array_elements((content::json ->> 'claims')::jsonb) as claim
  having count(*) > 0;
  with requested as (
    select i.id as intent, decode(x.k, 'hex') as key, x.o as holder
    from unnest(p_ids, p_contents) as i(id, content),
      jsonb_to_recordset((i.content::json ->> 'responses')::jsonb) as x(k text, o uuid)
  ), held as (
    update es.stored_responses o set intent = requested.intent
    from requested where o.key = requested.key and o.holder = requested.holder and o.status is null
      and o.intent is null
    returning o.key, o.holder
  )
  select string_agg(requested.holder::text, ',') into losers from requested where not exists (
    select from held where held.key = requested.key and held.holder = requested.holder);
  if losers is not null then
    raise exception 'taken over' using errcode = 'IP004', detail = losers;
  end if;
end $$;

create function es.save_responses(p_responses jsonb, p_streams text[]) returns void
language plpgsql as $$
declare
  losers text;
begin
  if p_responses is null then return; end if;
  with requested as (
    select decode(x.k, 'hex') as key, x.o as holder, x.c as status, decode(x.b, 'hex') as response
    from jsonb_to_recordset(p_responses) as x(k text, o uuid, s text, c int, b text)
    where p_streams is null or x.s = any (p_streams)
  ), held as (
    update es.stored_responses o set status = requested.status, response = requested.response, intent = null
    from requested where o.key = requested.key and o.holder = requested.holder
    returning o.key, o.holder
  )
  select string_agg(requested.holder::text, ',') into losers from requested where not exists (
    select from held where held.key = requested.key and held.holder = requested.holder);
  if losers is not null then
    raise exception 'taken over' using errcode = 'IP004', detail = losers;
  end if;
end $$;

-- Opens intents that reserve no streams and count towards no cap: all of them or, after an error of es.bind_intents, none.
create function es.open_intents(p_ids uuid[], p_holders uuid[], p_contents text[], p_process int) returns void
language plpgsql as $$
begin
  insert into es.intents (id, holder, content, leased_until, process)
  select x.id, x.holder, x.content::json, now() + interval '60 seconds', p_process
  from unnest(p_ids, p_holders, p_contents) as x(id, holder, content);
  perform es.bind_intents(p_ids, p_contents);
end $$;

-- Closes intents whose events are all appended, with their read models: all of them or, when one is closed already, none.
-- For those without erasures and side effects, whose claims have the right revision.
create function es.close_intents(p_ids uuid[], p_tables text[], p_read_models jsonb, p_streams text[]) returns void
language plpgsql set enable_seqscan = off as $$
declare
  closed json[];
begin
  with gone as (delete from es.intents where id = any (p_ids) returning content)
  select array_agg(content) into closed from gone;
  if coalesce(cardinality(closed), 0) < cardinality(p_ids) then
    raise exception 'an intent is closed already' using errcode = 'IP001';
  end if;
  perform es.take_claims(null, jsonb_agg(release))
  from unnest(closed) as content, jsonb_array_elements((content ->> 'releases')::jsonb) as release
  having count(*) > 0;
  perform es.write_read_models(p_tables, p_read_models, p_streams);
  perform es.save_responses(jsonb_agg(response), null)
  from unnest(closed) as content, jsonb_array_elements((content ->> 'responses')::jsonb) as response
  having count(*) > 0;
end $$;

-- Maxima of single owners, in place of the usual one. The cap is called as in es.intents.
create table es.cap_overrides (
  cap text primary key,
  max bigint not null check (max >= 0)
);

-- Owners that share caps with another one, which shares with nobody itself: together they may have what that one may. Whoever
-- has its own maximum of a cap does not share that.
create table es.cap_sharing (
  owner bigint primary key,
  shared_with bigint not null check (shared_with <> owner)
);
create index cap_sharing_shared_with on es.cap_sharing (shared_with);

-- Where there are too many records to count them for each new one: how many there were, and each new one since. Records that
-- were removed since are included, so there may be fewer.
create table es.cap_counts (
  cap text primary key,
  count bigint not null,
  counted_at timestamptz not null
) with (fillfactor = 50);

-- Counts under a lock that is held until the transaction ends: of two that come at once for the last place, the second sees
-- the first. Advisory, so that a wait for it never holds up readers of the log. The cap is called after p_owner; the records of
-- all p_owners count.
create function es.check_cap(
  p_table text, p_owner_column text, p_owner bigint, p_owners bigint[], p_id bigint, p_max bigint,
  p_is_counted text, p_is_closed text, p_keeps_count boolean, p_reserved_share int
) returns void
language plpgsql as $$
declare
  p_cap text := p_table || ' ' || p_owner;
  record_count bigint;
  is_closed boolean;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_cap, 727012));
  p_max := coalesce((select o.max from es.cap_overrides o where o.cap = p_cap), p_max);
  if p_reserved_share > 0 then p_max := p_max - ceil(p_max::numeric / p_reserved_share); end if;
  if p_keeps_count then
    update es.cap_counts c set count = c.count + 1
    where c.cap = p_cap and c.count < p_max and c.counted_at > now() - interval '1 hour';
    if found then return; end if;
  end if;
  execute format(
    'select (
       select count(*) from (
         select r.id from %I r where r.%I = any ($4) and %s
         union
         select i.cap_id from es.intents i where i.cap = $2
       ) held where held.id <> $3
     ), $3 <> 0 and (%s or exists (select from es.intents i where i.cap = $2 and i.cap_id = 0))',
    p_table, p_owner_column, p_is_counted, p_is_closed
  ) into record_count, is_closed using p_owner, p_cap, p_id, p_owners;
  if record_count >= p_max or is_closed then
    raise exception 'no more % of %', p_table, p_owner using errcode = 'IP005';
  end if;
  if p_keeps_count then
    insert into es.cap_counts as c (cap, count, counted_at) values (p_cap, record_count + 1, now())
    on conflict (cap) do update set count = excluded.count, counted_at = excluded.counted_at;
  end if;
end $$;

-- Commits. The appends are its first writes: anything written earlier would take the transaction id too soon, and revision
-- n+1 could sort before n for readers of the whole log.
-- p_atomic false: the heads are independent, and those that lost their race are not returned.
-- p_atomic true: all or nothing.
-- Of two at once that continue a stream after the same revision, the second waits for the first, and is then rolled back by
-- the primary key of es.events.
-- Always by index: a plan made while es.events was small reads all of it, and sessions keep such plans.
create function es.commit(
  p_heads jsonb, p_events jsonb, p_tables text[], p_read_models jsonb, p_claims jsonb, p_releases jsonb,
  p_atomic boolean, p_responses jsonb
) returns text[]
language plpgsql set enable_seqscan = off as $$
declare
  won text[];
begin
  if jsonb_array_length(p_heads) = 0 or jsonb_array_length(p_events) = 0 then
    raise exception 'an empty append is refused' using errcode = '22023';
  end if;

  -- One by one, as joined to a JSON list they might be read in another way than by primary key.
  select coalesce(array_agg(h.s), '{}') into won
  from jsonb_to_recordset(p_heads) as h(s text, x bigint, p text)
  where (select e.revision from es.events e where e.stream_id = h.s and e.revision = h.x + 1) is null
    and (h.x = -1 or decode(h.p, 'hex') = (
      select e.hash from es.events e where e.stream_id = h.s and e.revision = h.x));

  if p_atomic and cardinality(won) < jsonb_array_length(p_heads) then
    raise exception 'a stream has moved' using errcode = 'IP001';
  end if;

  -- Numbered in their order, and written in that of the streams' names, so that two calls cannot deadlock.
  insert into es.events (tx, pos, stream_id, revision, event_id, type, schema_version, account_id,
                         data, meta, hash, recorded_at)
  select pg_current_xact_id(), e.pos, e.s, e.r, e.id, e.t, e.v, e.a, e.d, e.m, decode(e.h, 'hex'), e.at
  from (
    select nextval('es.global_seq') as pos, x.* from rows from (
      jsonb_to_recordset(p_events) as (s text, r bigint, id uuid, t text, v smallint, a bigint,
                                       d jsonb, m jsonb, h text, at timestamptz)
    ) as x
    where x.s = any (won)
  ) e
  order by e.s, e.r;

  perform es.take_claims(p_claims, p_releases);
  perform es.write_read_models(p_tables, p_read_models, won);
  if p_responses is not null then perform es.save_responses(p_responses, won); end if;
  return won;
end $$;
