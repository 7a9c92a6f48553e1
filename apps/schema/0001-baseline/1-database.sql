-- What every process relies on: the keys that seal values, the audit log, and counters of limits.

create schema es;
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

-- Numbers of processes. Each draws one at its start.
create sequence es.process_numbers as int cycle;

-- The processes that run. Each shares an advisory lock with nobody but its own sessions: the first key is its kind, the
-- second its number. The lock ends with the process, because its connection does.
create view es.processes as
select case l.classid when 727085 then 'dispatcher' else 'api' end as kind, l.objid::bigint::int as number, l.pid
from pg_locks l
where l.locktype = 'advisory' and l.objsubid = 2 and l.classid in (727085, 727086) and l.granted
  and l.database = (select oid from pg_database where datname = current_database());

create function es.is_process_alive(p_number int) returns boolean
language sql volatile cost 1000
return p_number is null or exists (select from es.processes where number = p_number);

-- Takes the lock of a process in one more session.
create function es.hold_process(p_kind text, p_number int) returns void
language sql volatile
return pg_advisory_lock_shared(case p_kind when 'dispatcher' then 727085 when 'api' then 727086 end, p_number);

-- Draws the number of a new process, and takes its lock. Null: another process has that number.
create function es.draw_process(p_kind text) returns int
language plpgsql volatile as $$
declare
  drawn int := nextval('es.process_numbers');
begin
  if exists (select from es.processes where number = drawn) then return null; end if;
  perform es.hold_process(p_kind, drawn);
  return drawn;
end $$;

-- The processes that reach the server outside PostgreSQL that they need. Each holds one more lock while it does, by which
-- one that alone is cut off finds out (ADR-0144).
create view es.connected_processes as
select case l.classid when 727087 then 'dispatcher' else 'api' end as kind, l.objid::bigint::int as number
from pg_locks l
where l.locktype = 'advisory' and l.objsubid = 2 and l.classid in (727087, 727088) and l.granted
  and l.database = (select oid from pg_database where datname = current_database());

create function es.show_connected(p_kind text, p_number int, p_is_connected boolean) returns void
language plpgsql volatile as $$
declare
  lock int := case p_kind when 'dispatcher' then 727087 when 'api' then 727088 end;
begin
  if p_is_connected then perform pg_advisory_lock_shared(lock, p_number);
  else perform pg_advisory_unlock_shared(lock, p_number);
  end if;
end $$;

-- The master key that seals. Values of the previous one are accepted while it is being rotated out.
create table master_key (
  singleton boolean primary key default true check (singleton),
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  previous bytea check (octet_length(previous) = 32),
  since timestamptz not null default now()
);

-- Keys that are never replaced, such as those of keyed hashes, sealed with the master key.
create table data_keys (
  purpose text primary key,
  sealed bytea not null
);

create function refuse_retired_key() returns trigger
language plpgsql as $$
declare
  sealed bytea := to_jsonb(new) ->> tg_argv[0];
begin
  if sealed is null or not exists (select from master_key) then return new; end if;
  perform from master_key k
  where substring(sealed from 1 for 8) in (
      '\x696e6b01'::bytea || substring(k.fingerprint from 1 for 4),
      '\x696e6b01'::bytea || substring(k.previous from 1 for 4));
  if not found then
    raise exception 'sealed with a master key that has been rotated out';
  end if;
  return new;
end $$;

create function es.refuse_audit_change() returns trigger
language plpgsql as $$
begin
  raise exception 'audit entries are never changed or removed (% refused)', tg_op using errcode = 'IP003';
end $$;

-- An address is personal: it goes after a while, which is a setting from 7 days on, and nothing else ever changes.
create function es.refuse_audit_update() returns trigger
language plpgsql as $$
begin
  if new.ip_address is null and old.recorded_at < now() - interval '7 days'
    and to_jsonb(new) - 'ip_address' = to_jsonb(old) - 'ip_address'
  then return new; end if;
  raise exception 'audit entries are never changed or removed (% refused)', tg_op using errcode = 'IP003';
end $$;

-- What people changed outside of the history: never edited, apart from addresses that expire.
create table audit_log (
  id bigint generated always as identity primary key,
  account_id bigint,
  type text not null,
  actor jsonb not null,
  channel text not null,
  request_id text not null,
  subject jsonb not null,
  recorded_at timestamptz not null,
  ip_address inet,
  -- Numbers are given out before the commit: only by (tx, id), below the oldest running transaction, nothing comes later.
  tx xid8 not null default pg_current_xact_id()
);
create index audit_log_account on audit_log (account_id, id);
create index audit_log_actor on audit_log (account_id, ((actor ->> 'type') || ':' || (actor ->> 'id')), id);
create index audit_log_ip_address on audit_log (recorded_at)
  where ip_address is not null;
create index audit_log_time on audit_log (account_id, recorded_at, id);
create index audit_log_tx on audit_log (tx, id);
create index audit_log_type on audit_log (account_id, type, id);
create trigger audit_log_is_final before delete or truncate on audit_log
  for each statement execute function es.refuse_audit_change();
alter table audit_log enable always trigger audit_log_is_final;
create trigger audit_log_is_not_changed before update on audit_log
  for each row execute function es.refuse_audit_update();
alter table audit_log enable always trigger audit_log_is_not_changed;

-- The processes' role may not update the table.
create function es.forget_audit_addresses(max_rows int, retention_days int) returns int
language sql security definer set search_path = public, pg_temp as $$
with due as (
  select id from audit_log
  where ip_address is not null and recorded_at < now() - make_interval(days => greatest(retention_days, 7))
  order by recorded_at limit max_rows
), forgotten as (
  update audit_log l set ip_address = null from due where l.id = due.id returning l.id
)
select count(*)::int from forgotten
$$;
revoke execute on function es.forget_audit_addresses from public;

-- The maintenance that is on, during which requests that write are refused. Without a row it is off.
create table maintenance (
  singleton boolean primary key default true check (singleton),
  -- Shown to callers.
  reason text,
  since timestamptz not null default now()
);

-- How often something happened within a window that began with its first time: messages of a day, failed sign-ins, what
-- is audited only the 1st, 10th, 100th … time.
create table counts (
  -- a keyed hash of what is counted
  key bytea primary key check (octet_length(key) = 32),
  count int not null,
  until timestamptz not null
);
create index counts_until on counts (until);

-- Backups that were completed, for the alert about the age of the last one.
create table backups (
  id bigint generated always as identity primary key,
  taken_at timestamptz not null
);
create index backups_taken on backups (taken_at);
