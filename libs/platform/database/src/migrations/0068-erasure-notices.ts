import type { MigrationInterface, QueryRunner } from 'typeorm';

const LOCK = 727_014;

/** How processes learn of an erasure, and say that they have (docs/adr/0091). */
export class ErasureNotices implements MigrationInterface {
  readonly name = 'ErasureNotices0000000000068';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- who was erased a moment ago, or got another key because somebody else was
      create table erasure_notices (
        id bigint generated always as identity primary key,
        subject_ids bigint[] not null,
        noticed_at timestamptz not null default now()
      );

      -- the processes that may hold personal data
      create table erasure_watchers (
        id text primary key,
        seen_at timestamptz not null,
        -- the last notice after which it used nothing from before
        applied bigint not null
      );

      -- Notices become visible in the order of their ids: whoever has seen one has seen all before it.
      create function announce_erasure(p_subjects bigint[]) returns bigint
      language plpgsql as $$
      declare
        announced bigint;
      begin
        perform pg_advisory_xact_lock(${LOCK});
        delete from erasure_notices where noticed_at < now() - interval '10 minutes';
        delete from erasure_watchers where seen_at < now() - interval '10 minutes';
        insert into erasure_notices (subject_ids) values (p_subjects) returning id into announced;
        perform pg_notify('inkpad_erasures', '');
        return announced;
      end $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop function announce_erasure(bigint[]);
      drop table erasure_watchers;
      drop table erasure_notices;
    `);
  }
}
