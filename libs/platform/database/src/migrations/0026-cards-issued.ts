import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How many customers had a card by a place in the history. */
export class CardsIssued implements MigrationInterface {
  readonly name = 'CardsIssued0000000000026';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create index history_cards_issued on history (card_id, seq) where name = 'customer_card.created';
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index history_cards_issued');
  }
}
