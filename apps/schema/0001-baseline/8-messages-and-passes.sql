-- E-mails, card links, and passes in wallets. Tables of passes have no foreign keys to read models, because a repair replaces
-- those.

-- E-mails to be sent. An e-mail that was sent is deleted.
create table mail_outbox (
  id uuid primary key,
  attempts int not null default 0,
  -- of an e-mail that is being sent, the end of the lease
  due_at timestamptz not null,
  created_at timestamptz not null,
  give_up_at timestamptz not null,
  -- why the last attempt failed
  reason text,
  -- the whole e-mail
  sealed bytea not null,
  -- the process that holds the lease, until it ends
  process int
);
create index mail_outbox_due on mail_outbox (due_at);
create index mail_outbox_process on mail_outbox (process)
  where process is not null;
create trigger mail_outbox_sealed_key before insert or update of sealed on mail_outbox
  for each row execute function refuse_retired_key('sealed');

-- Card links by e-mail and SMS: what is to be sent, and what became of it. Ids only: addresses and texts are
-- looked up when a message is sent or shown.
create table card_messages (
  -- of the event that asks for it
  id uuid primary key,
  account_id bigint not null,
  customer_id bigint not null,
  -- null until the requested card is issued
  customer_card_id bigint,
  requested_at timestamptz not null,
  enqueued_at timestamptz not null default now(),
  channel text not null check (channel in ('email', 'sms')),
  -- the mail server does not know the address
  mail_refused boolean not null default false,
  state text not null default 'queued' check (state in ('queued', 'held', 'sent', 'failed', 'dropped')),
  attempts int not null default 0,
  -- of a message that is being sent, the end of the lease
  due_at timestamptz,
  finished_at timestamptz,
  -- why it was not sent, without anybody's address: a code while it is held or dropped
  reason text,
  -- what the SMS provider calls it
  provider_id text,
  -- null: not known
  arrival text check (arrival in ('delivered', 'undelivered')),
  -- the provider's number for why not
  arrival_code int,
  held_channels text[] not null default '{}',
  -- since when it counts within the limits of a day, from before it is handed over
  counted_at timestamptz,
  phone_missing boolean not null default false,
  -- the process that holds the lease, until it ends
  process int,
  check (due_at is null or state = 'queued')
) with (fillfactor = 80);
create index card_messages_account on card_messages (account_id, requested_at, id);
create index card_messages_card on card_messages (customer_card_id, requested_at);
create index card_messages_due on card_messages (channel, account_id, due_at)
  where due_at is not null;
create index card_messages_finished on card_messages (finished_at)
  where finished_at is not null;
create index card_messages_process on card_messages (process)
  where process is not null and due_at is not null;
-- For the limits of a day.
create index card_messages_counted on card_messages (account_id, channel, counted_at)
  where counted_at is not null;
create index card_messages_unissued on card_messages (customer_id)
  where customer_card_id is null;

-- Messages requested earlier than this are not sent: a history that was imported asks for them too.
create table card_message_cutoffs (
  account_id bigint primary key,
  since timestamptz not null
);

-- The channels through which the messages of a signup are not sent by themselves. Written before the signup is
-- recorded, and looked up by its causation id when its messages are enqueued.
create table signup_holds (
  account_id bigint not null,
  causation_id text not null,
  channels text[] not null,
  until timestamptz not null,
  phone_missing boolean not null default false,
  primary key (account_id, causation_id)
);
create index signup_holds_until on signup_holds (until);

create sequence announcements_id as bigint;

-- Messages that a store writes to its customers once. Also the queue of those that are being addressed.
create table announcements (
  id bigint primary key,
  account_id bigint not null,
  state text not null check (state in ('draft', 'scheduled', 'sending', 'sent', 'cancelled')),
  title text not null,
  text text not null,
  -- in the order of preference
  channels text[] not null,
  -- the filters of the list of customers
  audience jsonb not null,
  send_at timestamptz,
  -- who sent it
  actor jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  -- the last customer to whom it was addressed
  last_customer_id bigint not null default 0,
  -- whether it was addressed to all
  is_addressed boolean not null default false,
  -- what became of its messages, once all have their outcome
  counts jsonb,
  attempts int not null default 0,
  -- null: nothing to do; during an attempt the end of the lease
  due_at timestamptz,
  reason text,
  -- the process that holds the lease, until it ends
  process int
) with (fillfactor = 70);
create index announcements_account on announcements (account_id, id);
create index announcements_due on announcements (account_id, due_at)
  where due_at is not null;
create index announcements_process on announcements (process)
  where process is not null and due_at is not null;
-- For the quota of a day.
create index announcements_sent on announcements (account_id, send_at)
  where state in ('scheduled', 'sending', 'sent');

create sequence message_rules_id as bigint;

-- Rules by which a store writes to customers when something happens, or does not.
create table message_rules (
  id bigint primary key,
  account_id bigint not null,
  kind text not null check (kind in ('stamps_away', 'reward_unused', 'birthday', 'inactive')),
  -- stamps, or days; null for birthdays
  threshold int,
  -- null: whichever card
  card_id bigint,
  title text not null,
  text text not null,
  channels text[] not null,
  enabled boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  -- Up to where the occasions of the rule were looked for: the last entry of the history, and the time.
  checked_seq bigint not null default 0,
  checked_until timestamptz not null,
  -- The last occasion of the time checked_until that was looked at; null: all of them were.
  checked_tie bigint,
  -- null: it is disabled
  next_check_at timestamptz
) with (fillfactor = 70);
create index message_rules_account on message_rules (account_id, id)
  where deleted_at is null;
create index message_rules_next on message_rules (next_check_at)
  where next_check_at is not null;

-- How a store writes to its customers; no row: by the defaults.
create table message_settings (
  account_id bigint primary key,
  -- of the store's days; null: none
  quiet_from time,
  quiet_to time,
  max_per_week int not null
);

-- A message to each customer: what is to be sent, and what became of it. Ids only, as for card links. The text is that
-- of the announcement; of a rule, as it was when the message was enqueued.
create table customer_messages (
  id bigint generated always as identity primary key,
  uuid uuid not null default gen_random_uuid(),
  account_id bigint not null,
  announcement_id bigint,
  rule_id bigint,
  -- What a rule sends it for: the same occasion once.
  occasion text collate "C",
  customer_id bigint not null,
  -- the pass that shows it, or whose page its link leads to
  customer_card_id bigint,
  title text,
  text text,
  state text not null check (state in ('queued', 'sent', 'failed', 'skipped')),
  channel text check (channel in ('wallet', 'web_push', 'email', 'sms')),
  -- why not
  reason text,
  -- Channels whose servers have refused it.
  refused_channels text[] not null default '{}',
  -- Set before it is handed over to a server that would send it twice.
  handed_over_at timestamptz,
  -- since when it counts within the limits of a day, from before it is handed over
  counted_at timestamptz,
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  attempts int not null default 0,
  -- of a message that is being sent or recorded, the end of the lease
  due_at timestamptz,
  process int,
  check ((announcement_id is null) <> (rule_id is null)),
  check (due_at is null or state in ('queued', 'sent'))
) with (fillfactor = 70);
create unique index customer_messages_announcement on customer_messages (announcement_id, customer_id)
  where announcement_id is not null;
create index customer_messages_announcement_state on customer_messages (announcement_id, state, customer_id)
  where announcement_id is not null;
create unique index customer_messages_occasion on customer_messages (rule_id, occasion)
  where rule_id is not null;
create index customer_messages_rule on customer_messages (rule_id, id)
  where rule_id is not null;
create index customer_messages_rule_recent on customer_messages (rule_id, created_at) include (state, channel)
  where rule_id is not null;
create index customer_messages_rule_state on customer_messages (rule_id, state, id)
  where rule_id is not null;
-- For the maximum of a week.
create index customer_messages_customer on customer_messages (customer_id, created_at);
create index customer_messages_due on customer_messages (channel, account_id, due_at)
  where due_at is not null;
create index customer_messages_process on customer_messages (process)
  where process is not null and due_at is not null;
-- For the clean-up. Messages of rules go by the index customer_messages_rule_recent.
create index customer_messages_finished on customer_messages (finished_at)
  where announcement_id is not null and due_at is null;
-- For the limits of a day.
create index customer_messages_counted on customer_messages (account_id, channel, counted_at)
  where counted_at is not null;

-- Cards whose holders want no messages.
create table message_stops (
  customer_card_id bigint primary key,
  account_id bigint not null,
  stopped_at timestamptz not null default now()
);
create index message_stops_account on message_stops (account_id);

create sequence pass_tags as bigint;

-- Notifies of tags that rose, in the same transaction. A payload takes 8000 bytes.
create function notify_pass_changes() returns trigger
language plpgsql as $$
begin
  perform pg_notify('inkpad_passes', string_agg(customer_card_id || ':' || tag, ' '))
  from (select n.customer_card_id, n.tag, row_number() over (order by n.customer_card_id) as place
        from new_rows n join old_rows o using (customer_card_id)
        where n.tag > o.tag) raised
  group by place / 150;
  return null;
end $$;

-- A row for each customer card that somebody has opened as a pass.
create table passes (
  customer_card_id bigint primary key,
  account_id bigint not null,
  card_id bigint not null,
  opened_at timestamptz not null default now(),
  -- Of what the pass shows, as last compared. Null: compared with nothing yet, so that the next change counts.
  content_hash text,
  -- Rises with every change of what the pass shows. Only the follower of the log sets it, so it goes by the log.
  tag bigint not null default 0,
  changed_at timestamptz not null default now(),
  -- The last change of the balance, and the last one that the customer is notified of.
  balance_tag bigint not null default 0,
  notice_tag bigint not null default 0,
  notice jsonb,
  -- The last message of the store that the pass or the browser shows.
  message_tag bigint not null default 0,
  message jsonb
);
create index passes_account on passes (account_id, customer_card_id);
create index passes_card on passes (card_id, customer_card_id);
create trigger passes_changed after update on passes
  referencing old table as old_rows new table as new_rows for each statement execute function notify_pass_changes();

-- Updates to be sent: at most one for each target. A request while it is being sent raises its number.
create table pass_updates (
  channel text not null,
  target text not null,
  account_id bigint not null,
  -- 0: the customer is waiting. 1: one of many that a change of a card or store touches.
  priority smallint not null,
  due_at timestamptz not null default now(),
  request_number bigint not null default 1,
  attempts int not null default 0,
  -- why the last attempt failed
  reason text,
  -- the process that holds the lease, until it ends
  process int,
  primary key (channel, target)
) with (fillfactor = 50);
create index pass_updates_due on pass_updates (channel, priority, account_id, due_at);
create index pass_updates_process on pass_updates (process)
  where process is not null;

-- Passes that a change of a card (0: of the whole store) may have changed, worked off in batches.
create table pass_refreshes (
  account_id bigint not null,
  card_id bigint not null,
  -- The last customer card that was compared.
  last_customer_card_id bigint not null default 0,
  last_run_at timestamptz not null default now(),
  primary key (account_id, card_id)
);
create index pass_refreshes_next on pass_refreshes (last_run_at);

-- Where a customer keeps the card. Shown as pass_installed and by GET .../wallet.
create table pass_installations (
  customer_card_id bigint not null,
  platform text not null check (platform in ('apple', 'google', 'web')),
  account_id bigint not null,
  installed_at timestamptz,
  removed_at timestamptz,
  last_synced_at timestamptz,
  last_error text,
  primary key (customer_card_id, platform)
);

-- Messages of stores that a pass shows without a notification, because the vendor's quota was used up.
create table silent_messages (
  message_id bigint primary key
);

-- Images that stores uploaded, cropped and encoded anew.
create table pictures (
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  account_id bigint not null,
  png bytea not null,
  created_at timestamptz not null default now(),
  primary key (hash, account_id)
);
alter table pictures alter column png set storage external;
create index pictures_account on pictures (account_id);

-- The design behind the public URL of an image.
create table strip_designs (
  hash text primary key check (hash ~ '^[0-9a-f]{32}$'),
  -- the first store with this design
  account_id bigint not null,
  design jsonb not null,
  created_at timestamptz not null default now()
);

-- Images that were drawn: a cache that may be emptied at any time.
create table strip_images (
  hash text not null,
  name text not null,
  png bytea not null,
  drawn_at timestamptz not null default now(),
  primary key (hash, name)
);
alter table strip_images alter column png set storage external;

-- Devices that hold passes.
create table apple_devices (
  id bigint generated always as identity primary key,
  -- SHA-256: whoever knows the identifier itself may ask which passes the device has.
  library_hash bytea not null,
  pass_type_id text not null,
  push_token text not null,
  -- When the device last named it.
  token_since timestamptz not null default now(),
  unique (library_hash, pass_type_id)
);

-- Which devices hold which passes.
create table apple_registrations (
  device_id bigint not null references apple_devices (id) on delete cascade,
  customer_card_id bigint not null,
  account_id bigint not null,
  registered_at timestamptz not null default now(),
  primary key (device_id, customer_card_id)
);
create index apple_registrations_card on apple_registrations (customer_card_id, registered_at);

-- Cards and customer cards whose link somebody has opened.
create table google_classes (
  card_id bigint primary key,
  account_id bigint not null,
  -- Of what Google has. Null: perhaps nothing.
  sent_hash text,
  -- While a process is sending: nobody else does.
  leased_until timestamptz,
  -- which one, until then
  process int
);
create index google_classes_account on google_classes (account_id, card_id);
create index google_classes_process on google_classes (process)
  where process is not null and leased_until is not null;

create table google_objects (
  customer_card_id bigint primary key,
  account_id bigint not null,
  card_id bigint not null,
  sent_hash text,
  -- The last notice that was sent, see passes.notice_tag, and the last message of the store.
  notified_tag bigint not null,
  messaged_tag bigint not null default 0,
  leased_until timestamptz,
  process int
) with (fillfactor = 50);
create index google_objects_card on google_objects (card_id, customer_card_id);
create index google_objects_process on google_objects (process)
  where process is not null and leased_until is not null;

-- Google shows three notices of each kind in 24 hours. Older ones are deleted.
create table google_notices (
  customer_card_id bigint not null,
  kind text not null check (kind in ('update', 'message')),
  tag bigint not null,
  sent_at timestamptz not null default now(),
  primary key (customer_card_id, kind, tag)
);

-- Callbacks that were received, until they have expired anyway.
create table google_callbacks (
  nonce_hash bytea primary key,
  expires_at timestamptz not null
);
create index google_callbacks_expired on google_callbacks (expires_at);

-- When the next request of any process to a vendor, such as Google or a geocoder, may start.
create table vendor_rate_limits (
  vendor text primary key,
  next_at timestamptz not null
) with (fillfactor = 10);

-- Browsers that want to be told of changes of a card.
create table web_push_subscriptions (
  id bigint generated always as identity primary key,
  customer_card_id bigint not null,
  account_id bigint not null,
  -- With whose key it is sealed: erasing the customer makes it unreadable.
  customer_id bigint not null,
  -- Finds a browser's subscription again without its address.
  endpoint_hash bytea not null,
  sealed bytea not null,
  -- The tag of the last notice that was sent, and of the last message of the store.
  notified_tag bigint not null,
  messaged_tag bigint not null default 0,
  created_at timestamptz not null default now(),
  unique (customer_card_id, endpoint_hash)
);
create index web_push_subscriptions_customer on web_push_subscriptions (customer_id);
