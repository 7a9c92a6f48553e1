import type { MigrationInterface, QueryRunner } from 'typeorm';

const DROP = (limits: { settings: string; most: string }) => `
create or replace function webhook_drop_partitions(p_parents text[], p_before bigint) returns setof text
language plpgsql security definer set search_path = public, pg_temp ${limits.settings} as $$
declare
  part text;
begin
  perform pg_advisory_xact_lock(727002);
  for part in
    select c.relname from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    join pg_class p on p.oid = i.inhparent
    where p.relnamespace = 'public'::regnamespace and p.relname = any (p_parents)
      and p.relname = any (array['webhook_events', 'webhook_bodies', 'webhook_finished', 'webhook_attempts'])
      and right(c.relname, 8) < to_char(to_timestamp((p_before >> 37) * 86400) at time zone 'UTC', 'YYYYMMDD')
    order by right(c.relname, 8), c.relname ${limits.most}
  loop
    execute format('drop table %I', part);
    return next part;
  end loop;
end $$;`;

/**
 * The lock on a table of days is waited for by everybody who comes after: so only briefly, and held for one day's.
 * Whoever drops asks until nothing is returned.
 */
export class DaysDroppedOneByOne implements MigrationInterface {
  readonly name = 'DaysDroppedOneByOne0000000000016';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(DROP({ settings: "set lock_timeout = '200ms'", most: 'limit 1' }));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP({ settings: '', most: '' }));
  }
}
