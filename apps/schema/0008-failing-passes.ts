import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds what is rare in a store: the passes that a server does not update, and the people who were erased. */
export class FailingPasses implements MigrationInterface {
  readonly name = 'FailingPasses0000000000008';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'create index pass_installations_failing on pass_installations (account_id) where last_error is not null',
    );
    await runner.query('create index erasures_account on es.erasures (account_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index es.erasures_account');
    await runner.query('drop index pass_installations_failing');
  }
}
