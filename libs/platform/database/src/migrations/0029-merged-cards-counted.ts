import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How many customers had a card by a place in the history, without cards that were merged into others. */
export class MergedCardsCounted implements MigrationInterface {
  readonly name = 'MergedCardsCounted0000000000029';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index history_cards_issued;
      create index history_cards_issued on history (card_id, seq) include (name)
        where name in ('customer_card.created', 'customer_card.merged', 'customer_card.restored');
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index history_cards_issued;
      create index history_cards_issued on history (card_id, seq) where name = 'customer_card.created';
    `);
  }
}
