import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What Google Wallet has of cards and customer cards. */
export class GoogleWallet implements MigrationInterface {
  readonly name = 'GoogleWallet0000000000038';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- Cards and customer cards whose link somebody has opened. No foreign keys: rebuilding exchanges the rows.
      create table google_classes (
        card_id bigint primary key,
        account_id bigint not null,
        -- Of what Google has. Null: perhaps nothing.
        sent_hash text,
        -- While a process is sending: nobody else does.
        busy_until timestamptz
      );
      create index google_classes_account on google_classes (account_id, card_id);
      create table google_objects (
        customer_card_id bigint primary key,
        account_id bigint not null,
        card_id bigint not null,
        sent_hash text,
        -- The last notice that was sent, see passes.notice_tag.
        told_tag bigint not null,
        busy_until timestamptz
      ) with (fillfactor = 50);
      create index google_objects_card on google_objects (card_id, customer_card_id);

      -- Google shows three notices of each kind in 24 hours. Older ones are deleted.
      create table google_notices (
        customer_card_id bigint not null,
        kind text not null check (kind in ('update', 'message')),
        tag bigint not null,
        sent_at timestamptz not null default now(),
        primary key (customer_card_id, kind, tag)
      );

      -- When the next request of any process may start.
      create table google_pace (
        only_row boolean primary key default true check (only_row),
        next_at timestamptz not null default now()
      ) with (fillfactor = 10);
      insert into google_pace default values;

      -- Callbacks that were received, until they have expired anyway.
      create table google_callbacks (
        nonce_hash bytea primary key,
        expires_at timestamptz not null
      );
      create index google_callbacks_expired on google_callbacks (expires_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'drop table google_classes, google_objects, google_notices, google_pace, google_callbacks',
    );
  }
}
