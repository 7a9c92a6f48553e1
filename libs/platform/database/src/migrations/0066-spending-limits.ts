import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How often somebody was written to in a day, and which messages a network has asked too many of. */
export class SpendingLimits implements MigrationInterface {
  readonly name = 'SpendingLimits0000000000066';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table daily_counts (
        -- a keyed hash of what is counted
        key bytea primary key check (octet_length(key) = 32),
        count int not null,
        until timestamptz not null
      );
      create index daily_counts_until on daily_counts (until);

      -- The channels through which the messages of a signup are not sent by themselves. Written before the signup is
      -- recorded, and looked up by its request id when its messages are planned.
      create table signup_holds (
        account_id bigint not null,
        request_id text not null,
        channels text[] not null,
        until timestamptz not null,
        primary key (account_id, request_id)
      );
      create index signup_holds_until on signup_holds (until);

      alter table card_messages
        add held_channels text[] not null default '{}',
        -- the channel that the message has been counted for, against the limit of the address
        add counted_channel text;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table card_messages drop held_channels, drop counted_channel;
      drop table signup_holds, daily_counts;
    `);
  }
}
