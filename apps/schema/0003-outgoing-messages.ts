import type { MigrationInterface, QueryRunner } from 'typeorm';

const MIGRATE = `
lock table card_messages, customer_messages, mail_outbox in access exclusive mode;

-- Everything that goes to people: card links, messages of campaigns, and e-mails of the service. What is to be sent, and
-- what became of it. Card links and messages of campaigns have ids only: addresses are looked up when a message is sent
-- or shown. The text of an announcement is in its own table; of a rule, it is the one of when the message was enqueued.
create table outgoing_messages (
  id bigint generated always as identity primary key,
  -- What providers call it. Of a card link, the event that asks for it.
  uuid uuid not null unique default gen_random_uuid(),
  kind text not null check (kind in ('card_link', 'campaign', 'mail')),
  -- 0: an e-mail of the service itself
  account_id bigint not null,
  customer_id bigint,
  -- The card whose link it is, the pass that shows it, or the one whose page it leads to. Null until the requested card is
  -- issued, or until a message of a campaign was sent.
  customer_card_id bigint,
  announcement_id bigint,
  rule_id bigint,
  -- What a rule sends it for: the same occasion once.
  occasion text collate "C",
  title text,
  text text,
  -- The whole e-mail of the service, which is deleted once it was sent.
  sealed bytea,
  -- Queued with a reason and without a due time: held, until a user sends it.
  state text not null default 'queued' check (state in ('queued', 'sent', 'failed', 'skipped')),
  channel text check (channel in ('wallet', 'web_push', 'email', 'sms')),
  -- Why it was not sent, or waits, without anybody's address: a code, or of a card link what a server said.
  reason text,
  -- Channels whose servers have refused it.
  refused_channels text[] not null default '{}',
  -- Channels through which only a user sends it.
  held_channels text[] not null default '{}',
  -- A signup asked for it without a phone number: then only a user sends it by SMS.
  phone_missing boolean not null default false,
  -- when it was requested or addressed
  created_at timestamptz not null default now(),
  -- since when it is queued: a user may send it again
  enqueued_at timestamptz not null default now(),
  give_up_at timestamptz not null,
  -- Set before it is handed over, if it must not be sent twice.
  handed_over_at timestamptz,
  -- since when it counts within the limits of a day, from before it is handed over
  counted_at timestamptz,
  finished_at timestamptz,
  attempts int not null default 0,
  -- of a message that is being sent or recorded, the end of the lease
  due_at timestamptz,
  -- the process that holds the lease, until it ends
  process int,
  -- what the SMS provider calls it
  provider_id text,
  -- null: not known
  arrival text check (arrival in ('delivered', 'undelivered')),
  -- the provider's number for why not
  arrival_code int,
  check (due_at is null or state in ('queued', 'sent')),
  check ((kind = 'mail') = (sealed is not null)),
  check ((kind = 'mail') = (customer_id is null)),
  check ((kind = 'campaign') = (announcement_id is not null or rule_id is not null)),
  check (announcement_id is null or rule_id is null)
) with (fillfactor = 70);

insert into outgoing_messages
  (id, uuid, kind, account_id, customer_id, customer_card_id, announcement_id, rule_id, occasion, title, text, state,
    channel, reason, refused_channels, created_at, enqueued_at, give_up_at, handed_over_at, counted_at, finished_at,
    attempts, due_at)
  overriding system value
  select id, uuid, 'campaign', account_id, customer_id, customer_card_id, announcement_id, rule_id, occasion, title, text,
    state, channel, reason, refused_channels, created_at, created_at, created_at + interval '2 days', handed_over_at,
    counted_at, finished_at, attempts, due_at
  from customer_messages order by id;
select setval(pg_get_serial_sequence('outgoing_messages', 'id'),
  greatest((select max(id) from outgoing_messages), (select last_value from customer_messages_id_seq)));

insert into outgoing_messages (uuid, kind, account_id, customer_id, customer_card_id, state, channel, reason,
    refused_channels, held_channels, phone_missing, created_at, enqueued_at, give_up_at, counted_at, finished_at, attempts,
    due_at, provider_id, arrival, arrival_code)
  select id, 'card_link', account_id, customer_id, customer_card_id,
    case state when 'held' then 'queued' when 'dropped' then 'skipped' else state end, channel,
    case when state = 'held' then coalesce(reason, '') else reason end,
    case when mail_refused then array['email'] else '{}' end, held_channels, phone_missing, requested_at, enqueued_at,
    enqueued_at + interval '1 day', counted_at, case when state <> 'held' then finished_at end, attempts, due_at,
    provider_id, arrival, arrival_code
  from card_messages order by requested_at, id;

insert into outgoing_messages (uuid, kind, account_id, sealed, channel, reason, created_at, enqueued_at, give_up_at,
    attempts, due_at)
  select id, 'mail', 0, sealed, 'email', reason, created_at, created_at, give_up_at, attempts, due_at
  from mail_outbox order by created_at, id;

drop table card_messages, customer_messages, mail_outbox;

create index outgoing_messages_due on outgoing_messages (kind, channel, account_id, due_at)
  where due_at is not null;
create index outgoing_messages_process on outgoing_messages (process)
  where process is not null and due_at is not null;
-- For the limits of a day.
create index outgoing_messages_counted on outgoing_messages (account_id, channel, counted_at)
  where counted_at is not null;
-- For the clean-up. Messages of rules go by the index outgoing_messages_rule_recent.
create index outgoing_messages_finished on outgoing_messages (finished_at)
  where finished_at is not null and due_at is null and rule_id is null;
-- The outbox of a store.
create index outgoing_messages_account on outgoing_messages (account_id, created_at, id)
  where kind = 'card_link';
create index outgoing_messages_card on outgoing_messages (customer_card_id, created_at)
  where kind = 'card_link';
create index outgoing_messages_unissued on outgoing_messages (customer_id)
  where kind = 'card_link' and customer_card_id is null;
-- For the maximum of a week.
create index outgoing_messages_customer on outgoing_messages (customer_id, created_at)
  where kind = 'campaign';
create unique index outgoing_messages_announcement on outgoing_messages (announcement_id, customer_id)
  where announcement_id is not null;
create index outgoing_messages_announcement_state on outgoing_messages (announcement_id, state, customer_id)
  where announcement_id is not null;
create unique index outgoing_messages_occasion on outgoing_messages (rule_id, occasion)
  where rule_id is not null;
create index outgoing_messages_rule on outgoing_messages (rule_id, id)
  where rule_id is not null;
create index outgoing_messages_rule_recent on outgoing_messages (rule_id, created_at) include (state, channel)
  where rule_id is not null;
create index outgoing_messages_rule_state on outgoing_messages (rule_id, state, id)
  where rule_id is not null;

create trigger outgoing_messages_sealed_key before insert or update of sealed on outgoing_messages
  for each row when (new.sealed is not null) execute function refuse_retired_key('sealed');
-- Announces each kind and channel apart, so that 10,000 messages of a campaign wake no other queue.
create function announce_messages() returns trigger
language plpgsql as $$
begin
  perform pg_notify('inkpad_jobs', concat_ws(':', tg_table_name, c.kind, c.channel) || ' '
    || greatest(0, ceil(extract(epoch from min(c.due_at) - clock_timestamp()) * 1000))::int)
  from changed c where c.due_at < now() + interval '10 seconds'
  group by c.kind, c.channel;
  return null;
end $$;
create trigger outgoing_messages_announce_new after insert on outgoing_messages
  referencing new table as changed for each statement execute function announce_messages();
create trigger outgoing_messages_announce_due after update on outgoing_messages
  referencing new table as changed for each statement execute function announce_messages();
analyze outgoing_messages;
`;

/** Makes one table of card links, messages of campaigns and e-mails of the service. */
export class OutgoingMessages implements MigrationInterface {
  readonly name = 'OutgoingMessages0000000000003';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(MIGRATE);
  }

  /** Refuses: the tables from before cannot hold what is written since. */
  async down(): Promise<void> {
    throw new Error('this migration cannot be reverted: restore a backup instead');
  }
}
