import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What is known of the passes that customers have been given, and what is still to be sent to them. */
export class Passes implements MigrationInterface {
  readonly name = 'Passes0000000000035';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create sequence pass_tags;
      -- A row for each customer card that somebody has opened as a pass. No foreign keys: rebuilding exchanges the rows.
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
        -- The last change of the balance, and the last one that the customer is to be told of.
        balance_tag bigint not null default 0,
        notice_tag bigint not null default 0,
        notice jsonb
      );
      create index passes_account on passes (account_id, customer_card_id);
      create index passes_card on passes (card_id, customer_card_id);
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

      -- What is to be sent to whom: at most one entry a target, which is asked for again while it is being sent.
      create table pass_updates (
        channel text not null,
        target text not null,
        account_id bigint not null,
        -- 0: the customer is waiting. 1: one of many that a change of a card or store touches.
        priority smallint not null,
        due_at timestamptz not null default now(),
        asked bigint not null default 1,
        attempts int not null default 0,
        last_error text,
        primary key (channel, target)
      ) with (fillfactor = 50);
      create index pass_updates_due on pass_updates (channel, priority, account_id, due_at);

      -- Passes that a change of a card (0: of the whole store) may have changed, worked off in batches.
      create table pass_refreshes (
        account_id bigint not null,
        card_id bigint not null,
        -- The last customer card that was compared.
        reached bigint not null default 0,
        worked_at timestamptz not null default now(),
        primary key (account_id, card_id)
      );
      create index pass_refreshes_next on pass_refreshes (worked_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table pass_refreshes, pass_updates, pass_installations, passes;
      drop sequence pass_tags;
    `);
  }
}
