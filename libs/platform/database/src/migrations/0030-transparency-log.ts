import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TransparencyLog implements MigrationInterface {
  readonly name = 'TransparencyLog0000000000030';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table transparency_log (
        one boolean primary key default true check (one),
        -- leaves of the tree; grows together with the checkpoint of its subscription
        size bigint not null default 0,
        -- the newest that was signed, and how many leaves it covers
        checkpoint text,
        checkpoint_size bigint not null default 0,
        signed_at timestamptz,
        mailed_at timestamptz
      );
      insert into transparency_log default values;

      create table transparency_tiles (
        level smallint not null,
        index bigint not null,
        hashes bytea not null check (octet_length(hashes) between 32 and 8192 and octet_length(hashes) % 32 = 0),
        primary key (level, index)
      );
      -- hashes cannot be compressed
      alter table transparency_tiles alter hashes set storage external;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table transparency_tiles, transparency_log');
  }
}
