import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * How many wrong codes were entered since the last right one, and recovery codes under Argon2id. Those from before are
 * dropped: their users make new ones.
 */
export class SecondFactorFailures implements MigrationInterface {
  readonly name = 'SecondFactorFailures0000000000063';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table second_factors
        add code_failures int not null default 0,
        -- of the recovery codes, which are random: one for all of a user, so that one hash finds any of them
        add recovery_salt bytea;
      delete from recovery_codes;
      alter table recovery_codes rename sha256 to hash;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      delete from recovery_codes;
      alter table recovery_codes rename hash to sha256;
      alter table second_factors drop code_failures, drop recovery_salt;
    `);
  }
}
