-- Webhooks: subscriptions, the events that they may be sent, and their deliveries. Tables that grow with the events are
-- partitioned by day, and dropped day by day.

create sequence webhook_subscriptions_id as bigint;

-- Who is sent which events.
create table webhook_subscriptions (
  id bigint primary key,
  account_id bigint not null,
  events text[] not null check (cardinality(events) > 0),
  target_url text not null,
  description text,
  payload_format text not null check (payload_format in ('envelope', 'flat')),
  secret bytea not null,
  enabled boolean not null,
  disabled_at timestamptz,
  disabled_reason text check (disabled_reason in ('disabled_by_user', 'failing', 'blocked_address')),
  -- log position: only later events are delivered; null until it is first enabled
  active_from text,
  failing_since timestamptz,
  -- when it last succeeded or was enabled again: earlier failures no longer count
  healthy_at timestamptz,
  last_delivery_at timestamptz,
  last_delivery_status int,
  last_delivery_error text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- signs too, until then
  previous_secret bytea,
  previous_secret_until timestamptz,
  -- deliveries enqueued before this fail instead of being sent
  give_up_before timestamptz,
  -- the failing_since of the last warning: another one is another warning
  warned_failing_since timestamptz,
  -- the store's own headers: their names, and names and values sealed
  header_names text[] not null default '{}',
  headers bytea,
  -- only events about these, and events about none; null: all
  card_ids bigint[] check (cardinality(card_ids) > 0),
  location_ids bigint[] check (cardinality(location_ids) > 0),
  personal_data boolean not null default true,
  signature text not null default 'hmac' check (signature in ('hmac', 'ed25519')),
  -- verifies what the secret signs, when that is a private key
  public_key text,
  check ((signature = 'ed25519') = (public_key is not null)),
  check (enabled = (disabled_at is null) and enabled = (disabled_reason is null))
) with (fillfactor = 50);
create index webhook_subscriptions_account on webhook_subscriptions (account_id, id);
create index webhook_subscriptions_failing on webhook_subscriptions (failing_since)
  where enabled and failing_since is not null;
create trigger webhook_subscriptions_previous_secret_key before insert or update of previous_secret on webhook_subscriptions
  for each row execute function refuse_retired_key('previous_secret');
create trigger webhook_subscriptions_headers_key before insert or update of headers on webhook_subscriptions
  for each row execute function refuse_retired_key('headers');
create trigger webhook_subscriptions_secret_key before insert or update of secret on webhook_subscriptions
  for each row execute function refuse_retired_key('secret');

-- Log positions between which a subscription was enabled: their events may be delivered after its pause.
create table webhook_active_spans (
  id bigint generated always as identity primary key,
  subscription_id bigint not null references webhook_subscriptions (id) on delete cascade,
  active_from text not null,
  active_until text not null
);
create index webhook_active_spans_subscription on webhook_active_spans (subscription_id, id);

create sequence webhook_seq as bigint;

-- Ids carry the day (UTC, since 1970) above 37 bits of a sequence: an id alone says which partition holds it, later
-- ids are greater, and they stay below 2^53 until the year 2149.
create function webhook_first_id(at timestamptz) returns bigint language sql stable parallel safe
return floor(extract(epoch from at) / 86400)::bigint << 37;

create function webhook_next_id() returns bigint language sql volatile
return webhook_first_id(now()) | (nextval('webhook_seq') & ((1::bigint << 37) - 1));

-- Every public event of every store, in the order of the log.
create table webhook_events (
  seq bigint not null,
  event_id text not null,
  account_id bigint not null,
  customer_id bigint not null,
  type text not null,
  -- its place in the history
  stream text not null,
  revision bigint not null,
  recorded_at timestamptz not null,
  -- where it happened
  location_id bigint,
  primary key (account_id, seq) include (recorded_at, type)
) partition by range (seq);
create index webhook_events_id on webhook_events (event_id);

-- The envelope's bytes, sealed with the customer's key; made when first needed, never changed.
create table webhook_bodies (
  seq bigint primary key,
  body bytea not null
) partition by range (seq);
alter table webhook_bodies alter column body set storage external;

-- One for each subscription: the dispatcher that holds the lease sends everything in it.
create table webhook_queues (
  subscription_id bigint primary key,
  -- rises whenever deliveries are enqueued, so that a dispatcher that returns the lease overlooks none
  enqueued_count bigint not null default 1,
  -- when there is something to do, infinity: nothing; while leased, the end of the lease
  due_at timestamptz not null,
  -- the process that holds the lease
  dispatcher_id int,
  tier text not null default 'fast' check (tier in ('fast', 'slow', 'probe'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index webhook_queues_due on webhook_queues (due_at)
  where due_at < 'infinity';
create index webhook_queues_dispatcher on webhook_queues (dispatcher_id)
  where dispatcher_id is not null;

-- Deliveries to be made: few compared with the finished ones, and leased without an update of theirs.
create table webhook_pending (
  id bigint not null,
  subscription_id bigint not null,
  event_seq bigint not null,
  event_id text not null,
  account_id bigint not null,
  customer_id bigint not null,
  type text not null,
  payload_format text not null check (payload_format in ('envelope', 'flat')),
  -- of every kind
  attempts_count int not null default 0,
  -- scheduled attempts alone: they decide what comes next
  tries smallint not null default 0,
  first_attempt_at timestamptz,
  next_attempt_at timestamptz not null,
  created_at timestamptz not null,
  stream text not null,
  primary key (subscription_id, id)
) with (
  fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05
);
create index webhook_pending_again on webhook_pending (subscription_id, next_attempt_at)
  where tries > 0;
create index webhook_pending_first on webhook_pending (subscription_id, id)
  where tries = 0;

-- Deliveries that have ended. Almost all of them with their only attempt, which is in the same row.
create table webhook_finished (
  id bigint not null,
  subscription_id bigint not null,
  event_seq bigint not null,
  event_id text not null,
  account_id bigint not null,
  customer_id bigint not null,
  type text not null,
  payload_format text not null,
  status text not null check (status in ('delivered', 'failed', 'cancelled')),
  attempts_count int not null,
  created_at timestamptz not null,
  delivered_at timestamptz,
  -- the scheduled attempt that ended it; null: none did
  attempt int,
  attempted_at timestamptz,
  response_status int,
  duration_ms int,
  error text,
  -- sealed with the customer's key: a receiver may echo what it was sent
  response_excerpt bytea,
  primary key (subscription_id, id)
) partition by range (id);
create index webhook_finished_type on webhook_finished (subscription_id, type, id);
create index webhook_finished_undelivered on webhook_finished (subscription_id, status, id)
  where status <> 'delivered';

create view webhook_deliveries as
select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
  'pending' as status, attempts_count, next_attempt_at, created_at, null::timestamptz as delivered_at
from webhook_pending
union all
select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
  status, attempts_count, null::timestamptz as next_attempt_at, created_at, delivered_at
from webhook_finished;

-- Attempts that did not end their delivery, and those that somebody has asked for.
create table webhook_other_attempts (
  subscription_id bigint not null,
  delivery_id bigint not null,
  attempt int not null,
  kind text not null check (kind in ('scheduled', 'manual')),
  at timestamptz not null,
  status int,
  duration_ms int not null,
  error text,
  response_excerpt bytea,
  primary key (subscription_id, delivery_id, attempt)
) partition by range (delivery_id);

create view webhook_attempts as
select subscription_id, id as delivery_id, attempt, 'scheduled' as kind, attempted_at as at, response_status as status,
  duration_ms, error, response_excerpt
from webhook_finished where attempt is not null
union all
select subscription_id, delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt
from webhook_other_attempts;

-- Deliveries that people want sent again.
create table webhook_redeliveries (
  id bigint generated always as identity primary key,
  subscription_id bigint not null,
  delivery_id bigint not null,
  created_at timestamptz not null,
  unique (subscription_id, delivery_id)
);

-- Replays that people asked for.
create table webhook_replays (
  id bigint generated always as identity primary key,
  subscription_id bigint not null,
  account_id bigint not null,
  recorded_from timestamptz not null,
  -- exclusive
  recorded_to timestamptz not null,
  -- null: all
  types text[],
  after_seq bigint not null,
  last_seq bigint,
  created_at timestamptz not null,
  -- the log's position at the request
  log_head text not null,
  -- repeated by a client that does not know the outcome of its request
  request uuid not null,
  -- only events of which the subscription has no delivery yet
  fills_gap boolean not null default false
);
create index webhook_replays_subscription on webhook_replays (subscription_id);

-- Creates the partitions of the days. With the rights of the owner, as the processes create no tables.
create function webhook_make_partitions(p_first timestamptz, p_last timestamptz) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  parent text;
  part text;
  first_id bigint;
begin
  perform pg_advisory_xact_lock(727002);
  for first_id in
    select generate_series(webhook_first_id(p_first), webhook_first_id(p_last), 1::bigint << 37)
  loop
    foreach parent in array array['webhook_events', 'webhook_bodies', 'webhook_finished', 'webhook_other_attempts'] loop
      part := parent || to_char(to_timestamp((first_id >> 37) * 86400) at time zone 'UTC', '_YYYYMMDD');
      if to_regclass(part) is null then
        execute format('create table %I (like %I including all)', part, parent);
        execute format('alter table %I attach partition %I for values from (%s) to (%s)',
          parent, part, first_id, first_id + (1::bigint << 37));
      end if;
    end loop;
  end loop;
end $$;
revoke execute on function webhook_make_partitions from public;

-- Drops the oldest partition older than the id's day, and returns its name. One partition a call, with a short lock
-- timeout, because everybody who comes later waits for its lock; call it until it returns nothing.
create function webhook_drop_partitions(p_parents text[], p_before bigint) returns setof text
language plpgsql security definer set search_path = public, pg_temp set lock_timeout = '200ms' as $$
declare
  part text;
begin
  perform pg_advisory_xact_lock(727002);
  for part in
    select c.relname from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class p on p.oid = i.inhparent
    where p.relnamespace = 'public'::regnamespace and p.relname = any (p_parents)
      and p.relname = any (array['webhook_events', 'webhook_bodies', 'webhook_finished', 'webhook_other_attempts'])
      and right(c.relname, 8) < to_char(to_timestamp((p_before >> 37) * 86400) at time zone 'UTC', 'YYYYMMDD')
    order by right(c.relname, 8), c.relname limit 1
  loop
    execute format('drop table %I', part);
    return next part;
  end loop;
end $$;
revoke execute on function webhook_drop_partitions from public;

select webhook_make_partitions(now() - interval '1 day', now() + interval '7 days');
