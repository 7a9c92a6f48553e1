import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds to customers whether an e-mail to their address came back, by which messages choose their channel. */
export class EmailBounces implements MigrationInterface {
  readonly name = 'EmailBounces0000000000004';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `alter table customers add column has_bounced boolean
         generated always as (state -> 'emailBounce' is not null) stored`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table customers drop column has_bounced');
  }
}
