import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What tills and those who keep the books ask for: customers changed since a time, and redemptions (docs/adr/0055). */
export class Tills implements MigrationInterface {
  readonly name = 'Tills0000000000048';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- always 24 characters, so that the order of texts is that of times; no cast to a time is immutable
      alter table customers
        add updated_at text collate "C" generated always as (state ->> 'updatedAt') stored,
        add erased_at text generated always as (state ->> 'erasedAt') stored,
        add erased boolean generated always as (state ->> 'erasedAt' is not null) stored;
      create index customers_updated on customers (account_id, updated_at, id)
        where merged_into is null and not erased;

      create index history_redeemed on history (account_id, occurred_at, position)
        where name = 'reward.redeemed';
      create index history_redeemed_customer on history (customer_id, occurred_at, position)
        where name = 'reward.redeemed';
      create index history_redeemed_card on history (card_id, occurred_at, position)
        where name = 'reward.redeemed';
      create index history_redeemed_reward on history (reward_id, occurred_at, position)
        where name = 'reward.redeemed';
      create index history_redeemed_location on history (location_id, occurred_at, position)
        where name = 'reward.redeemed' and location_id is not null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index history_redeemed_location;
      drop index history_redeemed_reward;
      drop index history_redeemed_card;
      drop index history_redeemed_customer;
      drop index history_redeemed;
      alter table customers drop column updated_at, drop column erased_at, drop column erased;
    `);
  }
}
