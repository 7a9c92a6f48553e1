import type { MigrationInterface, QueryRunner } from 'typeorm';

export class IntentHolders implements MigrationInterface {
  readonly name = 'IntentHolders0000000000011';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- whoever may give the intent up
      alter table es.intents add column holder uuid not null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table es.intents drop column holder');
  }
}
