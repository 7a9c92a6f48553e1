import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds the passes of a store that a server does not update, which are none unless one is down. */
export class FailingPasses implements MigrationInterface {
  readonly name = 'FailingPasses0000000000008';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'create index pass_installations_failing on pass_installations (account_id) where last_error is not null',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index pass_installations_failing');
  }
}
