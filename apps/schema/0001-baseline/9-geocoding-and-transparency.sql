-- Where addresses are, and the tamper-evident log of the history (C2SP tlog-tiles).

-- Locations whose coordinates are to be looked up.
create table geocoding_queue (
  location_id bigint primary key,
  account_id bigint not null,
  -- look up again an address that has coordinates, for an operator
  is_forced boolean not null default false,
  attempts int not null default 0,
  due_at timestamptz not null default now(),
  -- why the last attempt failed
  reason text,
  -- the process that holds the lease, until it ends
  process int
);
create index geocoding_queue_due on geocoding_queue (account_id, due_at);
create index geocoding_queue_process on geocoding_queue (process)
  where process is not null;

-- What a geocoder said about an address.
create table geocoding_cache (
  provider text not null,
  -- SHA-256 of the address
  query bytea not null,
  -- all three null: not found
  latitude double precision,
  longitude double precision,
  precision text,
  queried_at timestamptz not null default now(),
  primary key (provider, query)
);
create index geocoding_cache_age on geocoding_cache (queried_at);

create sequence gazetteer_loads as int;

-- The data of the built-in geocoder that were loaded completely.
create table gazetteer_parts (
  part text primary key,
  load_id int not null,
  version text not null,
  loaded_at timestamptz not null default now()
);

-- Places by name.
create table gazetteer_places (
  load_id int not null,
  -- the name without case, accents and punctuation
  key text not null,
  country text not null,
  state text not null,
  population int not null,
  latitude real not null,
  longitude real not null
);
create index gazetteer_places_key on gazetteer_places (load_id, key);

-- Places by postcode.
create table gazetteer_postcodes (
  load_id int not null,
  postcode text not null,
  country text not null,
  place text not null,
  latitude real not null,
  longitude real not null
);
create index gazetteer_postcodes_key on gazetteer_postcodes (load_id, postcode);

-- The size and the last signed checkpoint of the log.
create table transparency_log (
  singleton boolean primary key default true check (singleton),
  -- leaves of the tree; grows together with the checkpoint of its subscription
  size bigint not null default 0,
  -- the newest that was signed, and how many leaves it covers
  checkpoint text,
  checkpoint_size bigint not null default 0,
  signed_at timestamptz,
  mailed_at timestamptz
);
insert into transparency_log default values;

-- The hashes of the tree, 256 to a tile.
create table transparency_tiles (
  level smallint not null,
  index bigint not null,
  hashes bytea not null
    check (octet_length(hashes) between 32 and 8192 and octet_length(hashes) % 32 = 0),
  primary key (level, index)
);
alter table transparency_tiles alter column hashes set storage external;

-- Announces to the dispatchers what becomes due before each of them polls: the table, and in how many
-- milliseconds.
create function announce_jobs() returns trigger
language plpgsql as $$
declare
  due timestamptz;
begin
  select min(c.due_at) into due from changed c where c.due_at < now() + interval '10 seconds';
  if due is not null then
    perform pg_notify('inkpad_jobs', tg_table_name || ' '
      || greatest(0, ceil(extract(epoch from due - clock_timestamp()) * 1000))::int);
  end if;
  return null;
end $$;

do $$
declare
  jobs text;
begin
  foreach jobs in array array['announcements', 'card_messages', 'customer_messages', 'geocoding_queue', 'imports',
                              'mail_outbox', 'pass_updates']
  loop
    execute format('create trigger %1$s_announce_new after insert on %1$I
      referencing new table as changed for each statement execute function announce_jobs()', jobs);
    execute format('create trigger %1$s_announce_due after update on %1$I
      referencing new table as changed for each statement execute function announce_jobs()', jobs);
  end loop;
end $$;
