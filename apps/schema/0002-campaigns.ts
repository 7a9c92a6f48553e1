import type { MigrationInterface, QueryRunner } from 'typeorm';

const STATEMENTS = `
lock table announcements, message_rules in access exclusive mode;

create sequence campaigns_id as bigint;

-- Messages that a store writes to its customers: once, to an audience (announcement), or on an occasion (rule). Also the
-- queue of the announcements that are being addressed, and of the rules whose occasions are looked for.
create table campaigns (
  -- Both kinds take theirs from one sequence. An announcement and a rule from before may have the same.
  id bigint not null,
  kind text not null check (kind in ('announcement', 'rule')),
  account_id bigint not null,
  state text not null,
  title text not null,
  text text not null,
  -- in the order of preference
  channels text[] not null,
  -- of an announcement the filters of the list of customers; of a rule its kind, threshold and card
  trigger jsonb not null,
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
  -- Up to where the occasions of a rule were looked for: the last entry of the history, and the time.
  checked_seq bigint,
  checked_until timestamptz,
  -- The last occasion of the time checked_until that was looked at; null: all of them were.
  checked_tie bigint,
  attempts int not null default 0,
  -- null: nothing to do; during an attempt the end of the lease
  due_at timestamptz,
  reason text,
  -- the process that holds the lease, until it ends
  process int,
  primary key (id, kind),
  check (state = any (case kind when 'rule' then '{enabled,disabled,deleted}'::text[]
    else '{draft,scheduled,sending,sent,cancelled}' end))
) with (fillfactor = 70);

insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, send_at, actor, created_at,
  updated_at, started_at, finished_at, last_customer_id, is_addressed, counts, attempts, due_at, reason, process)
select id, 'announcement', account_id, state, title, text, channels, audience, send_at, actor, created_at,
  updated_at, started_at, finished_at, last_customer_id, is_addressed, counts, attempts, due_at, reason, process
from announcements;

insert into campaigns (id, kind, account_id, state, title, text, channels, trigger, created_at, updated_at,
  finished_at, checked_seq, checked_until, checked_tie, due_at)
select id, 'rule', account_id,
  case when deleted_at is not null then 'deleted' when enabled then 'enabled' else 'disabled' end,
  title, text, channels, jsonb_build_object('kind', kind, 'threshold', threshold, 'cardId', card_id), created_at,
  updated_at, deleted_at, checked_seq, checked_until, checked_tie, next_check_at
from message_rules;

select setval('campaigns_id', greatest(nextval('announcements_id'), nextval('message_rules_id'),
  (select max(id) + 1 from campaigns)), false);

create index campaigns_account on campaigns (account_id, kind, id)
  where state <> 'deleted';
create index campaigns_due on campaigns (kind, account_id, due_at)
  where due_at is not null;
create index campaigns_process on campaigns (process)
  where process is not null and due_at is not null;
-- For the quota of a day.
create index campaigns_sent on campaigns (account_id, send_at)
  where kind = 'announcement' and state in ('scheduled', 'sending', 'sent');
create trigger campaigns_announce_new after insert on campaigns
  referencing new table as changed for each statement execute function announce_jobs();
create trigger campaigns_announce_due after update on campaigns
  referencing new table as changed for each statement execute function announce_jobs();

drop table announcements, message_rules;
drop sequence announcements_id, message_rules_id;
analyze campaigns;
`;

/** Makes one table of announcements and message rules, which keep their ids. */
export class Campaigns implements MigrationInterface {
  readonly name = 'Campaigns0000000000002';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(STATEMENTS);
  }

  /** Refuses: the tables from before cannot hold what is written since. */
  async down(): Promise<void> {
    throw new Error('this migration cannot be reverted: restore a backup instead');
  }
}
