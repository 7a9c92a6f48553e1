import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The row tables so far. Later ones get the index where they are created. */
const ROW_TABLES = [
  'accounts',
  'cards',
  'rewards',
  'customers',
  'customer_cards',
  'locations',
  'posters',
];

/** To find rows that an older fold made. Nearly all have the same version, so the index takes next to no room. */
export class RowsOfOlderFolds implements MigrationInterface {
  readonly name = 'RowsOfOlderFolds0000000000034';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of ROW_TABLES) {
      await runner.query(`create index ${table}_fold on ${table} (fold_version)`);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ROW_TABLES) await runner.query(`drop index ${table}_fold`);
  }
}
