-- The read models of the aggregates, all of one shape: `state` is what the events lead to, and what is searched, or read by
-- other contexts, is a column generated or derived from it. Then the history, one row for each event.

-- Stores whose customers' phone numbers are being brought into the form of its country.
create table phone_normalizations (
  account_id bigint primary key,
  -- of the store, whose country the numbers up to after_id have been adapted to
  revision bigint not null,
  after_id bigint not null default 0,
  -- commands that read the previous country may commit after their customer's turn
  is_repeated boolean not null default true,
  -- another customer has the number already
  has_conflicts boolean not null default false,
  -- null: done
  due_at timestamptz default now()
);
create index phone_normalizations_due on phone_normalizations (due_at)
  where due_at is not null;

create function start_phone_normalization() returns trigger
language plpgsql as $$
begin
  insert into public.phone_normalizations as p (account_id, revision) values (new.id, new.revision)
  on conflict (account_id) do update
  set revision = excluded.revision, after_id = 0, is_repeated = true, has_conflicts = false, due_at = now();
  return null;
end $$;

create sequence accounts_id as bigint;

-- Stores.
create table accounts (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  name text generated always as (state ->> 'name') stored,
  display_name text generated always as (coalesce(state ->> 'storeName', state ->> 'name')) stored,
  locale text generated always as (state ->> 'locale') stored,
  address_form text generated always as (state ->> 'addressForm') stored,
  time_zone text generated always as (state ->> 'timeZone') stored,
  country text generated always as (state ->> 'country') stored
) with (fillfactor = 70);
create index accounts_account on accounts (account_id, id);
create index accounts_projection_version on accounts (projection_version);
create trigger phone_normalization_of_country after update on accounts
  for each row when (new.country is not null and new.country is distinct from old.country)
  execute function start_phone_normalization();
-- A store that is imported may have numbers from before its country was set.
create trigger phone_normalization_of_new after insert on accounts
  for each row when (new.country is not null) execute function start_phone_normalization();

create sequence cards_id as bigint;

-- Card programmes.
create table cards (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  name text generated always as (state ->> 'name') stored,
  stamps_required bigint generated always as ((state ->> 'stampsRequired')::bigint) stored
) with (fillfactor = 70);
create index cards_account on cards (account_id, id);
create index cards_projection_version on cards (projection_version);

create sequence rewards_id as bigint;

-- Rewards of cards.
create table rewards (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  card_id bigint generated always as ((state ->> 'cardId')::bigint) stored,
  deleted_at text generated always as (state ->> 'deletedAt') stored,
  stamps_required bigint generated always as ((state ->> 'stampsRequired')::bigint) stored,
  active boolean generated always as ((state ->> 'active')::boolean) stored
) with (fillfactor = 70);
create index rewards_account on rewards (account_id, id);
create index rewards_card on rewards (card_id);
create index rewards_projection_version on rewards (projection_version);
create index rewards_live on rewards (card_id)
  where deleted_at is null;
-- The order in which a store's rewards are listed.
create index rewards_order
  on rewards (account_id, card_id, ((state ->> 'position')::bigint), ((state ->> 'stampsRequired')::bigint), id)
  where state ->> 'deletedAt' is null;

create sequence customers_id as bigint;

-- Customers.
create table customers (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  phone_digits text generated always as (state ->> 'phoneDigits') stored,
  search_text text generated always as (
    case when octet_length(state ->> 'searchText') <= 2000 then state ->> 'searchText' end
  ) stored,
  long_search_text text generated always as (
    case when octet_length(state ->> 'searchText') > 2000 then state ->> 'searchText' end
  ) stored,
  merged_into bigint generated always as ((state -> 'mergedInto' ->> 'customerId')::bigint) stored,
  -- always 24 characters, so that the order of texts is that of times; no cast to a time is immutable
  updated_at text collate "C" generated always as (state ->> 'updatedAt') stored,
  erased_at text generated always as (state ->> 'erasedAt') stored,
  -- of a date as YYYY-MM-DD
  birthday_month smallint generated always as (substr(state ->> 'birthday', 6, 2)::smallint) stored,
  -- the poster at which they signed up, and whether they scanned it
  poster_id bigint generated always as ((state -> 'signup' ->> 'posterId')::bigint) stored,
  poster_scanned boolean generated always as ((state -> 'signup' ->> 'isScanned')::boolean) stored,
  -- for messages: how they can be reached, and on which day, as in 12-31
  has_email boolean generated always as (state ->> 'email' is not null) stored,
  has_phone boolean generated always as (coalesce(state ->> 'phone' like '+%', false)) stored,
  marketing_consent boolean generated always as ((state ->> 'marketingConsent')::boolean) stored,
  sms_consent boolean generated always as ((state ->> 'smsConsent')::boolean) stored,
  birthday_date text generated always as (substr(state ->> 'birthday', 6, 5)) stored,
  created_at text collate "C" generated always as (state ->> 'createdAt') stored
) with (
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
create index customers_birthday on customers (account_id, birthday_month, id)
  where merged_into is null and erased_at is null;
-- The sign-ups of each poster.
create index customers_poster on customers (poster_id, poster_scanned)
  where poster_id is not null;
create index customers_projection_version on customers (projection_version);
create index customers_live on customers (account_id, id)
  where merged_into is null;
-- For the quota.
create index customers_counted on customers (account_id)
  where merged_into is null and erased_at is null;
create index customers_long on customers (account_id, id)
  where long_search_text is not null;
-- The customers who are one person with another one.
create index customers_merged on customers (merged_into)
  where merged_into is not null;
create index customers_phone on customers using gin (account_id, phone_digits gin_trgm_ops);
-- Customers whose phone number is not in E.164 format.
create index customers_phone_unknown on customers (account_id, id)
  where state ->> 'phone' not like '+%';
create index customers_references on customers using gin (account_id, (state -> 'externalReferences') jsonb_path_ops);
create index customers_search on customers using gin (account_id, search_text gin_trgm_ops);
create index customers_searched on customers (account_id, id) include (search_text, phone_digits);
create index customers_updated on customers (account_id, updated_at, id)
  where merged_into is null and erased_at is null;

-- What other tables are joined to where a page shows a person; decrypted by whoever reads it.
create view customer_names as
select id, state ->> 'firstName' as first_name, state ->> 'lastName' as last_name,
  state ->> 'email' as email, state ->> 'phone' as phone
from customers;

-- With the owner's rights, because only an owner may analyze. It reads a sample of the table.
create function analyze_erased() returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  before bigint[] := array(select subject_id from es.erasures where in_statistics);
begin
  if cardinality(before) = 0 then return 0; end if;
  analyze customers;
  update es.erasures set in_statistics = false where subject_id = any (before);
  return cardinality(before);
end $$;
revoke execute on function analyze_erased from public;

create sequence customer_cards_id as bigint;

-- Cards of customers. The columns that es.derive_customer_cards derives from the state are written by the functions that
-- write read models, since each stamp changes the state: PostgreSQL parses the expressions of generated columns again for
-- each statement (ADR-0152).
create table customer_cards (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  customer_id bigint,
  card_id bigint,
  code text,
  uuid uuid,
  redeemed_reward_ids jsonb,
  -- for sums over all of a store's cards
  balance bigint,
  unlocked_count bigint,
  merged_into bigint
) with (fillfactor = 70);
create function es.derive_customer_cards(state jsonb) returns table (
  customer_id bigint, card_id bigint, code text, uuid uuid, redeemed_reward_ids jsonb, balance bigint,
  unlocked_count bigint, merged_into bigint
) language sql immutable as $$
select (state ->> 'customerId')::bigint, (state ->> 'cardId')::bigint, state ->> 'code', (state ->> 'uuid')::uuid,
  state -> 'redeemedRewardIds', (state ->> 'stampsCount')::bigint, jsonb_array_length(state -> 'unlocked'),
  (state -> 'mergedInto' ->> 'id')::bigint
$$;
create index customer_cards_account on customer_cards (account_id, id);
create index customer_cards_card on customer_cards (card_id) include (merged_into);
create index customer_cards_code on customer_cards (account_id, code);
create index customer_cards_customer on customer_cards (customer_id, id);
create index customer_cards_projection_version on customer_cards (projection_version);
create index customer_cards_uuid on customer_cards (uuid);

-- From 2^52, so that none is ever the id of a customer card, and all are numbers to JavaScript.
create sequence decoy_cards_id as bigint minvalue 4503599627370496 start 4503599627370496;

-- Cards that look issued to whoever gave somebody else's address: they cannot tell whether it is known.
create table decoy_cards (
  id bigint primary key check (id >= 4503599627370496),
  account_id bigint not null,
  card_id bigint not null,
  -- Whose address was given. Once they are erased, the card is gone as theirs would be.
  customer_id bigint not null,
  uuid uuid not null unique,
  -- The name that was given, sealed with the customer's key.
  sealed bytea not null,
  -- As of a customer card that was just issued.
  state jsonb not null,
  code text generated always as (state ->> 'code') stored,
  -- When staff confirmed that whoever shows it is the customer: from then on it leads to their card.
  confirmed_at timestamptz
);
create index decoy_cards_code on decoy_cards (account_id, code);
create index decoy_cards_customer on decoy_cards (customer_id);

-- The card behind each decoy card: that of the customer whose address was given, or of whoever they were merged into.
-- None while they have no such card. `offset 0` keeps the planner from joining, for which it would read whole tables.
create view decoy_owners as
select d.id as decoy_id, d.account_id, d.code, d.customer_id as issued_to, d.confirmed_at is not null as confirmed,
  o.id as customer_card_id, o.customer_id
from decoy_cards d
cross join lateral (
  with recursive person as (
    select d.customer_id as id, 0 as merges
    union all
    select c.merged_into, p.merges + 1
    from person p
    cross join lateral (select merged_into from customers where id = p.id and merged_into is not null offset 0) c
    where p.merges < 100
  )
  select k.id, k.customer_id
  from person p
  cross join lateral (
    select id, customer_id from customer_cards
    where customer_id = p.id and card_id = d.card_id and merged_into is null
    offset 0
  ) k
  order by p.merges desc, k.id
  limit 1
) o;

create sequence redemptions_id as bigint;

create sequence locations_id as bigint;

-- Locations.
create table locations (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  deleted_at text generated always as (state ->> 'deletedAt') stored,
  place_precision text generated always as (state ->> 'precision') stored
) with (fillfactor = 70);
create index locations_account on locations (account_id, id);
create index locations_projection_version on locations (projection_version);
create index locations_live on locations (account_id)
  where deleted_at is null;

create sequence posters_id as bigint;

-- Posters that customers sign up at.
create table posters (
  id bigint primary key,
  account_id bigint not null,
  revision bigint not null,
  hash bytea not null,
  projection_version int not null,
  state jsonb not null,
  card_id bigint generated always as ((state ->> 'cardId')::bigint) stored,
  slug text generated always as (state ->> 'slug') stored,
  deleted_at text generated always as (state ->> 'deletedAt') stored,
  title text generated always as (state ->> 'title') stored,
  active boolean generated always as ((state ->> 'active')::boolean) stored,
  paper_size text generated always as (state ->> 'paperSize') stored
) with (fillfactor = 70);
create index posters_account on posters (account_id, id);
create index posters_card on posters (card_id);
create index posters_projection_version on posters (projection_version);
create index posters_live on posters (account_id)
  where deleted_at is null;
create index posters_slug on posters (slug);

-- Every event of every store in the order of the log, for lists and counts. A subscription fills it.
create table history (
  -- the number of the event in the log, from 0 without gaps
  seq bigint primary key,
  event_id uuid not null,
  -- plain byte order, which costs half as much to keep in an index
  stream text collate "C" not null,
  revision bigint not null,
  position text collate "C" not null,
  account_id bigint not null,
  name text collate "C" not null,
  recorded_at timestamptz not null,
  -- the latest recorded_at so far. It never falls, so a time is a place in the table
  latest_recorded_at timestamptz not null,
  occurred_at timestamptz not null,
  channel text collate "C" not null,
  actor text collate "C" not null,
  customer_id bigint,
  customer_card_id bigint,
  card_id bigint,
  location_id bigint,
  reward_id bigint,
  stamps bigint,
  balance bigint,
  reverses uuid,
  -- of stamps: how they came about
  source text collate "C"
);
-- Every entry is a write to each index that it enters, so other filters are applied to the entries that these find.
create index history_account on history (account_id, seq);
create index history_actor on history (account_id, actor, seq);
-- What is about a customer card in other streams than its own.
create index history_card_links on history (customer_card_id, seq)
  where name = 'customer.card_links_requested';
create index history_customer on history (customer_id, seq)
  where customer_id is not null;
create unique index history_event on history (event_id);
-- By how much the clocks of a store's writers disagree, where they do, or how late its events were imported.
create index history_late on history (account_id, (latest_recorded_at - recorded_at))
  where latest_recorded_at - recorded_at > interval '1 minute';
create index history_name on history (account_id, name, seq);
create index history_redeemed on history (account_id, occurred_at, seq)
  where name = 'reward.redeemed';
create index history_reverses on history (reverses)
  where reverses is not null;
create index history_stream on history (stream, seq);
-- Stampings and redemptions in the order in which they happened.
create index history_visits on history (customer_id, occurred_at, seq)
  where name = 'reward.redeemed'
    or name = 'stamp.earned' and reverses is null and source in ('api', 'pos', 'app_scan');

-- Finds the number of the first entry that is not before a position, or was not recorded before a time; after the last one
-- if all are. Neither falls along the table, so halving finds it without an index that each event would have to enter.
create function find_history_seq(p_position text, p_time timestamptz) returns bigint
language plpgsql stable parallel safe as $$
declare
  low bigint := 0;
  high bigint := coalesce((select max(seq) from history), -1) + 1;
  middle bigint;
  probe record;
begin
  while low < high loop
    middle := (low + high) / 2;
    select seq, position < p_position collate "C" or latest_recorded_at < p_time as is_before into probe
    from history where seq >= middle order by seq limit 1;
    if probe.is_before then low := probe.seq + 1; else high := middle; end if;
  end loop;
  return low;
end $$;

-- What happened in each hour of a store's days, for its statistics. A subscription counts it from the history.
create table statistics_hours (
  account_id bigint not null,
  -- that of the store is shown; another one is being counted, or is removed
  generation bigint not null default 0,
  -- 0: all cards
  card_id bigint not null,
  -- 0: all locations
  location_id bigint not null,
  -- 0: whoever did it
  user_id bigint not null,
  day date not null,
  hour smallint not null,
  visits bigint not null,
  stamps bigint not null,
  redemptions bigint not null,
  -- customers of the store, or of the card
  joined bigint not null,
  -- customers who were here for the first time in a day, week or month, or at all. Each is counted in one hour, so that
  -- the sum over an interval is their number
  first_of_day bigint not null,
  first_of_week bigint not null,
  first_of_month bigint not null,
  first_of_all bigint not null,
  primary key (account_id, generation, card_id, location_id, user_id, day, hour)
) with (fillfactor = 70);
create index statistics_hours_day on statistics_hours (account_id, generation, day);

create sequence statistics_generation as bigint;

-- Generations of counts that are not shown. They are removed when that is due; whoever counts one puts it off.
create table statistics_unused (
  account_id bigint not null,
  generation bigint not null,
  remove_at timestamptz not null,
  primary key (account_id, generation)
);
create index statistics_unused_remove on statistics_unused (remove_at);

-- The time zone by which each store was counted.
create table statistics_stores (
  account_id bigint primary key,
  time_zone text not null,
  -- the last entry of the history that was counted and is about the store
  seq bigint not null,
  -- the counts that are shown
  generation bigint not null default 0,
  -- null: its counts apply. Otherwise it is counted anew then, and entries are not counted until that is done
  recount_at timestamptz,
  recount_failures int not null default 0
);
create index statistics_stores_recount on statistics_stores (recount_at)
  where recount_at is not null;

-- The last entry of the history that was counted.
create table statistics_progress (
  singleton boolean primary key default true check (singleton),
  seq bigint not null
);

create sequence imports_id as bigint;

-- Files of customers that somebody has uploaded. Also the queue of what is to be done with them.
create table imports (
  id bigint primary key,
  -- tells its events from those of an import elsewhere whose history was moved here
  uuid uuid not null,
  account_id bigint not null,
  -- the card that the customers are enrolled on
  card_id bigint,
  state text not null
    check (state in ('checking', 'ready', 'running', 'done', 'failed', 'undoing', 'undone')),
  -- waits for a start after the check
  dry_run boolean not null,
  format text not null check (format in ('csv', 'ndjson')),
  encoding text not null,
  separator text,
  -- [{name, field}] in the order of the file
  columns jsonb not null,
  date_order text check (date_order in ('dmy', 'mdy')),
  -- compressed and sealed; gone once its rows are in import_rows
  file bytea,
  rows_total int not null,
  rows_done int not null default 0,
  created int not null default 0,
  updated int not null default 0,
  unchanged int not null default 0,
  failed int not null default 0,
  undone int not null default 0,
  refused int not null default 0,
  -- issues by field: why the whole import failed
  error jsonb,
  -- who asked for what is done now
  actor jsonb not null,
  created_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  updated_at timestamptz not null,
  -- when the rows were deleted
  rows_deleted_at timestamptz,
  attempts int not null default 0,
  -- null: nothing to do; during an attempt the end of the lease
  due_at timestamptz,
  reason text,
  -- the process that holds the lease, until it ends
  process int
) with (fillfactor = 70);
create index imports_account on imports (account_id, id);
-- For the quota of rows in a day.
create index imports_counted on imports (account_id, coalesce(started_at, created_at))
  include (rows_total, dry_run, started_at);
create index imports_due on imports (account_id, due_at)
  where due_at is not null;
create index imports_process on imports (process)
  where process is not null and due_at is not null;
create index imports_kept on imports (created_at)
  where rows_deleted_at is null;

-- The rows of such a file.
create table import_rows (
  import_id bigint not null,
  -- as spreadsheets count
  row int not null,
  state text not null
    check (state in ('pending', 'created', 'updated', 'unchanged', 'failed', 'undone', 'refused')),
  -- the cells; gone once they are applied
  sealed bytea,
  -- issues by field (ADR-0149), which repeat nothing personal
  errors jsonb,
  customer_id bigint,
  customer_card_id bigint,
  primary key (import_id, row)
) with (fillfactor = 70);
create index import_rows_state on import_rows (import_id, state, row);
create index import_rows_customer on import_rows (customer_id)
  where customer_id is not null and sealed is not null;
