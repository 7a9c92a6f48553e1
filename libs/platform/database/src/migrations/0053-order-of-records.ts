import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Deliveries planned before have none; they are held to the order of their customer alone. */
export class OrderOfRecords implements MigrationInterface {
  readonly name = 'OrderOfRecords0000000000053';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_pending add column stream text');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_pending drop column stream');
  }
}
