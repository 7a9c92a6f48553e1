import type { MigrationInterface, QueryRunner } from 'typeorm';

const LOCK = 727_005;

/** Which part of the log counts as recorded by which time (record 34). */
export class LogTimes implements MigrationInterface {
  readonly name = 'LogTimes0000000000025';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table es.log_times (
        n bigint primary key,
        -- the last event of this part of the log; its place stays the same when the log moves to another engine
        stream_id text not null,
        revision bigint not null,
        -- when that event counts, in ms since 1970; it never falls
        at_ms bigint not null,
        -- without events of its own: it says that later ones count from this time at the earliest
        quiet boolean not null
      );
      create index log_times_at on es.log_times (at_ms, n);

      -- Adds an entry after number p_n - 1, unless another process has already added one. A quiet entry replaces the
      -- quiet entry before it, so that asking again and again takes no space.
      create function es.add_log_time(p_n bigint, p_stream text, p_revision bigint, p_at_ms bigint, p_quiet boolean)
      returns boolean language plpgsql as $$
      begin
        perform pg_advisory_xact_lock(${LOCK});
        if exists (select from es.log_times where n >= p_n) then return false; end if;
        if p_quiet then delete from es.log_times where n = p_n - 1 and quiet; end if;
        insert into es.log_times (n, stream_id, revision, at_ms, quiet)
        values (p_n, p_stream, p_revision, p_at_ms, p_quiet);
        return true;
      end $$;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop function es.add_log_time; drop table es.log_times');
  }
}
