import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Cards that look like one and belong to nobody: whoever signs up with the address of a customer gets such a card, so
 * that the form does not tell who is one (docs/adr/0051).
 */
export class StandInCards implements MigrationInterface {
  readonly name = 'StandInCards0000000000044';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- From 2^52, so that none is ever the id of a customer card, and all are numbers to JavaScript.
      create sequence stand_in_cards_id as bigint start 4503599627370496 minvalue 4503599627370496;
      create table stand_in_cards (
        id bigint primary key check (id >= 4503599627370496),
        account_id bigint not null,
        card_id bigint not null,
        -- Whose address was given. Once they are erased, the card is gone as theirs would be.
        customer_id bigint not null,
        uuid uuid not null unique,
        -- The name that was given, sealed with the customer's key.
        sealed bytea not null,
        -- As of a customer card that was just issued.
        state jsonb not null
      );
      create index stand_in_cards_customer on stand_in_cards (customer_id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table stand_in_cards; drop sequence stand_in_cards_id');
  }
}
