import type { MigrationInterface, QueryRunner } from 'typeorm';

export class OrderOfRecords implements MigrationInterface {
  readonly name = 'OrderOfRecords0000000000053';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_pending add column stream text not null');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_pending drop column stream');
  }
}
