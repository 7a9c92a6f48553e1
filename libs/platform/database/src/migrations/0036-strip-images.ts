import type { MigrationInterface, QueryRunner } from 'typeorm';

export class StripImages implements MigrationInterface {
  readonly name = 'StripImages0000000000036';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- what stores have uploaded, as it was stored: cut to size, and encoded anew
      create table pictures (
        hash text not null check (hash ~ '^[0-9a-f]{64}$'),
        account_id bigint not null,
        png bytea not null,
        created_at timestamptz not null default now(),
        primary key (hash, account_id)
      );
      create index pictures_account on pictures (account_id);

      -- what a public URL of an image stands for
      create table strip_designs (
        hash text primary key check (hash ~ '^[0-9a-f]{32}$'),
        -- of the store that it was made for first
        account_id bigint not null,
        design jsonb not null,
        created_at timestamptz not null default now()
      );

      -- a cache: may be emptied at any time, and is empty after a crash or a failover
      create unlogged table strip_images (
        hash text not null,
        name text not null,
        png bytea not null,
        drawn_at timestamptz not null default now(),
        primary key (hash, name)
      );

      -- images cannot be compressed any further
      alter table pictures alter png set storage external;
      alter table strip_images alter png set storage external;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table strip_images, strip_designs, pictures');
  }
}
