import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds sessions that begin with a link, once: the one that `npm start` prints. */
export class SignInLinks implements MigrationInterface {
  readonly name = 'SignInLinks0000000000012';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table sessions add column by_link boolean not null default false');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table sessions drop column by_link');
  }
}
