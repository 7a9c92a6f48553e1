import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MailOutbox implements MigrationInterface {
  readonly name = 'MailOutbox0000000000009';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- mails to be sent, and nothing else: what was sent is gone
      create table mail_outbox (
        id uuid primary key,
        recipient text not null,
        subject text not null,
        body text not null,
        attempts int not null default 0,
        -- of a mail that is being sent, the end of the lease
        due_at timestamptz not null,
        created_at timestamptz not null
      );
      create index mail_outbox_due on mail_outbox (due_at);

      -- the failing_since that people were warned of: another one is another warning
      alter table webhook_subscriptions add warned_of timestamptz;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table webhook_subscriptions drop warned_of;
      drop table mail_outbox;
    `);
  }
}
