import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Tables that are dropped day by day; each has its day in the highest bits of its first key. */
const BY_DAY = ['webhook_events', 'webhook_bodies', 'webhook_finished', 'webhook_attempts'];

/**
 * Ids carry the day (UTC, since 1970) above 37 bits of a sequence: an id alone says in which partition
 * it lies, newer ids are greater, and they stay below 2^53 until the year 2149.
 */
const IDS = `
create sequence webhook_seq as bigint;
create function webhook_first_id(at timestamptz) returns bigint language sql stable parallel safe
return floor(extract(epoch from at) / 86400)::bigint << 37;
create function webhook_next_id() returns bigint language sql volatile
return webhook_first_id(now()) | (nextval('webhook_seq') & ((1::bigint << 37) - 1));
`;

const SUBSCRIPTIONS = `
alter table webhook_subscriptions
  -- signs beside the present one until then
  add previous_secret bytea,
  add previous_secret_until timestamptz,
  -- what was planned before is failed instead of sent
  add give_up_before timestamptz;
create index webhook_subscriptions_failing on webhook_subscriptions (failing_since)
  where enabled and failing_since is not null;
`;

const EVENTS = `
-- every public event of every store, in the order of the log
create table webhook_events (
  seq bigint not null,
  event_id text not null,
  account_id bigint not null,
  customer_id bigint not null,
  type text not null,
  -- where it stands in the history
  stream text not null,
  revision bigint not null,
  recorded_at timestamptz not null,
  primary key (account_id, seq) include (recorded_at, type)
) partition by range (seq);
create index webhook_events_id on webhook_events (event_id);

-- the envelope's bytes, sealed with the customer's key; made when first needed, never changed
create table webhook_bodies (
  seq bigint primary key,
  body bytea not null
) partition by range (seq);
alter table webhook_bodies alter body set storage external;
`;

const DELIVERIES = `
-- what is still to be sent: small beside the finished, and nothing in it is updated to claim it
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
  -- the scheduled ones alone: they decide what comes next
  tries smallint not null default 0,
  first_attempt_at timestamptz,
  next_attempt_at timestamptz not null,
  created_at timestamptz not null,
  primary key (subscription_id, id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
create index webhook_pending_first on webhook_pending (subscription_id, id) where tries = 0;
create index webhook_pending_again on webhook_pending (subscription_id, next_attempt_at) where tries > 0;

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
  primary key (subscription_id, id)
) partition by range (id);
create index webhook_finished_type on webhook_finished (subscription_id, type, id);
create index webhook_finished_undelivered on webhook_finished (subscription_id, status, id)
  where status <> 'delivered';

create table webhook_attempts (
  delivery_id bigint not null,
  attempt int not null,
  kind text not null check (kind in ('scheduled', 'manual')),
  at timestamptz not null,
  status int,
  duration_ms int not null,
  error text,
  -- sealed with the customer's key: a receiver may echo what it was sent
  response_excerpt bytea,
  primary key (delivery_id, attempt)
) partition by range (delivery_id);

create view webhook_deliveries as
select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
  'pending'::text as status, attempts_count, next_attempt_at, created_at, null::timestamptz as delivered_at
from webhook_pending
union all
select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
  status, attempts_count, null, created_at, delivered_at
from webhook_finished;

-- asked for by people, waiting to be made
create table webhook_redeliveries (
  id bigint generated always as identity primary key,
  subscription_id bigint not null,
  delivery_id bigint not null,
  created_at timestamptz not null,
  unique (subscription_id, delivery_id)
);
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
  last_seq bigint not null,
  created_at timestamptz not null
);
`;

const LANES = `
-- one a subscription: whoever owns a lane sends everything in it
create table webhook_lanes (
  subscription_id bigint primary key,
  -- raised by whoever adds work, so that an owner who lets go does not overlook it
  planned bigint not null default 1,
  -- when there is something to do: infinity is never; of an owned lane, the end of the lease
  due_at timestamptz not null,
  owner uuid,
  pace text not null default 'fast' check (pace in ('fast', 'slow', 'probe'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index webhook_lanes_due on webhook_lanes (due_at) where due_at < 'infinity';
create index webhook_lanes_owner on webhook_lanes (owner) where owner is not null;

create table webhook_dispatchers (
  id uuid primary key,
  seen_at timestamptz not null
);
`;

/**
 * With the rights of the tables' owner, which the service's own role need not have. A partition is made
 * beside its table and then attached, which keeps nobody from reading or writing meanwhile.
 */
const PARTITIONS = `
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
    foreach parent in array array['${BY_DAY.join("', '")}'] loop
      part := parent || to_char(to_timestamp((first_id >> 37) * 86400) at time zone 'UTC', '_YYYYMMDD');
      if to_regclass(part) is null then
        execute format('create table %I (like %I including all)', part, parent);
        execute format('alter table %I attach partition %I for values from (%s) to (%s)',
          parent, part, first_id, first_id + (1::bigint << 37));
      end if;
    end loop;
  end loop;
end $$;

-- whole days before the id; returns the names of what is gone
create function webhook_drop_partitions(p_parents text[], p_before bigint) returns setof text
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  part text;
begin
  perform pg_advisory_xact_lock(727002);
  for part in
    select c.relname from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class p on p.oid = i.inhparent
    where p.relnamespace = 'public'::regnamespace and p.relname = any (p_parents)
      and p.relname = any (array['${BY_DAY.join("', '")}'])
      and right(c.relname, 8) < to_char(to_timestamp((p_before >> 37) * 86400) at time zone 'UTC', 'YYYYMMDD')
    order by c.relname
  loop
    execute format('drop table %I', part);
    return next part;
  end loop;
end $$;
revoke execute on function webhook_make_partitions, webhook_drop_partitions from public;
`;

const MOVE = `
select webhook_make_partitions(now() - interval '1 day', now() + interval '7 days');
drop table old_webhook_attempts, old_webhook_deliveries, old_webhook_events;
`;

/** Deliveries in lanes, and tables that are dropped day by day (docs/adr/0017, 0018). */
export class WebhookLanes implements MigrationInterface {
  readonly name = 'WebhookLanes0000000000007';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of ['webhook_events', 'webhook_deliveries', 'webhook_attempts']) {
      await runner.query(`alter table ${table} rename to old_${table}`);
      await runner.query(`alter index ${table}_pkey rename to old_${table}_pkey`);
    }
    for (const part of [IDS, SUBSCRIPTIONS, EVENTS, DELIVERIES, LANES, PARTITIONS, MOVE]) {
      await runner.query(part);
    }
  }

  /** Deliberately impossible: the tables before it have no place for what has been planned since. */
  async down(): Promise<void> {
    throw new Error('webhook deliveries are not moved back: restore a backup instead');
  }
}
