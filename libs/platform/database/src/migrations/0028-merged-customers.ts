import type { MigrationInterface, QueryRunner } from 'typeorm';

export class MergedCustomers implements MigrationInterface {
  readonly name = 'MergedCustomers0000000000028';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table customers
        add merged_into bigint generated always as ((state -> 'mergedInto' ->> 'customerId')::bigint) stored;
      create index customers_live on customers (account_id, id) where merged_into is null;
      -- customers_searched begins with the same columns
      drop index customers_account;
      alter table customer_cards
        add merged_into bigint generated always as ((state -> 'mergedInto' ->> 'id')::bigint) stored;
      drop index customer_cards_card;
      create index customer_cards_card on customer_cards (card_id) include (merged_into);

      -- streams that a commit to several existing ones is going to write: no second such commit may begin meanwhile
      create table es.intent_streams (
        stream_id text primary key,
        intent uuid not null references es.intents (id) on delete cascade
      );
      create index intent_streams_intent on es.intent_streams (intent);
      -- claims that moved to another stream when the intent was opened, to be moved back if it is abandoned
      alter table es.intents add column moved jsonb;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table es.intents drop column moved;
      drop table es.intent_streams;
      drop index customer_cards_card;
      alter table customer_cards drop column merged_into;
      create index customer_cards_card on customer_cards (card_id);
      create index customers_account on customers (account_id, id);
      drop index customers_live;
      alter table customers drop column merged_into;
    `);
  }
}
