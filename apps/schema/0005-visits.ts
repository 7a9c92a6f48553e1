import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds imported customers to the statistics, and lets each store be counted anew: visits are days of a customer now. */
export class Visits implements MigrationInterface {
  readonly name = 'Visits0000000000005';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table statistics_hours add column imported bigint not null default 0;
      update statistics_stores set recount_at = coalesce(recount_at, now())`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table statistics_hours drop column imported;
      update statistics_stores set recount_at = coalesce(recount_at, now())`);
  }
}
