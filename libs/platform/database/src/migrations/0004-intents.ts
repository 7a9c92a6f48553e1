import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Intents implements MigrationInterface {
  readonly name = 'Intents0000000000004';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- what a commit to another engine is about to do, so that any process can finish it
      create table es.intents (
        id uuid primary key,
        content json not null,
        leased_until timestamptz not null,
        created_at timestamptz not null default now()
      );
      create index intents_lease on es.intents (leased_until);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table es.intents');
  }
}
