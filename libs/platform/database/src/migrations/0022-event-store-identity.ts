import type { MigrationInterface, QueryRunner } from 'typeorm';

export class EventStoreIdentity implements MigrationInterface {
  readonly name = 'EventStoreIdentity0000000000022';

  /** Without its row, which would be the same in every database made of one template. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table es.identity (
        one boolean primary key default true check (one),
        database uuid not null default gen_random_uuid(),
        -- since when an EventStoreDB carries the same id; a database that is restored keeps both
        linked_at timestamptz
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table es.identity');
  }
}
