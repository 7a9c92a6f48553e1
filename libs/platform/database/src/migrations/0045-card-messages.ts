import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CardMessages implements MigrationInterface {
  readonly name = 'CardMessages0000000000045';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Card links by e-mail and SMS: what is to be sent, and what became of it. Ids only: addresses and texts are
      -- looked up when a message is sent or shown.
      create table card_messages (
        -- of the event that asks for it
        id uuid primary key,
        account_id bigint not null,
        customer_id bigint not null,
        -- null until the card that was wished for is issued
        customer_card_id bigint,
        requested_at timestamptz not null,
        planned_at timestamptz not null default now(),
        channel text not null check (channel in ('email', 'sms')),
        -- the mail server does not know the address
        mail_refused boolean not null default false,
        state text not null default 'queued' check (state in ('queued', 'held', 'sent', 'failed', 'dropped')),
        attempts int not null default 0,
        -- of a message that is being sent, the end of the lease
        due_at timestamptz check (due_at is null or state = 'queued'),
        finished_at timestamptz,
        -- why it was not sent, without anybody's address
        reason text,
        -- what the SMS provider calls it
        provider_id text
      ) with (fillfactor = 80);
      create index card_messages_due on card_messages (channel, account_id, due_at) where due_at is not null;
      create index card_messages_account on card_messages (account_id, requested_at, id);
      create index card_messages_card on card_messages (customer_card_id, requested_at);
      -- for the cap
      create index card_messages_sms on card_messages (account_id, finished_at)
        where channel = 'sms' and state = 'sent';
      create index card_messages_unissued on card_messages (customer_id) where customer_card_id is null;

      -- Wishes recorded earlier are not for this service to fulfil.
      create table card_message_starts (account_id bigint primary key, since timestamptz not null);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      delete from es.checkpoints where subscription = 'card messages';
      drop table card_message_starts, card_messages;
    `);
  }
}
