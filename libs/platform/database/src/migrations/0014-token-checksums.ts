import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TokenChecksums implements MigrationInterface {
  readonly name = 'TokenChecksums0000000000014';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- false: from before tokens carried one, which the version before goes on making
      alter table api_tokens add has_checksum boolean not null default false;
      create index api_tokens_unchecked on api_tokens (sha256)
        where not has_checksum and revoked_at is null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table api_tokens drop has_checksum');
  }
}
