import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Stores the result of the latest test of a webhook, which takes no delivery. */
export class LastTests implements MigrationInterface {
  readonly name = 'LastTests0000000000007';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_subscriptions add column last_test jsonb');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table webhook_subscriptions drop column last_test');
  }
}
