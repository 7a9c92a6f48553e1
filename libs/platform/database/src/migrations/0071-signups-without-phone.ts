import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Tells messages that may not go by SMS because no number was entered from those beyond the share of a network. */
export class SignupsWithoutPhone implements MigrationInterface {
  readonly name = 'SignupsWithoutPhone0000000000071';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table signup_holds add phone_missing boolean not null default false;
      alter table card_messages add phone_missing boolean not null default false;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table card_messages drop phone_missing;
      alter table signup_holds drop phone_missing;
    `);
  }
}
