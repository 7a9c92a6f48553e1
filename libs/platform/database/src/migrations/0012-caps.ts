import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Counts under a lock that is held until the transaction ends: two that come at once for the last place follow one
 * another, and the second sees the first. Advisory, so that a wait for it never holds up who reads the log. An intent with
 * a `cap_id` of 0 closes the owner: no new record may begin until it ends.
 */
const CHECK_CAP = `
create function es.check_cap(
  p_table text, p_owner_column text, p_owner bigint, p_id bigint, p_max bigint, p_is_counted text, p_is_closed text
) returns void
language plpgsql as $$
declare
  p_cap text := p_table || ' ' || p_owner;
  record_count bigint;
  is_closed boolean;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_cap, 727012));
  execute format(
    'select (
       select count(*) from (
         select r.id from %I r where r.%I = $1 and %s
         union
         select i.cap_id from es.intents i where i.cap = $2
       ) held where held.id <> $3
     ), $3 <> 0 and (%s or exists (select from es.intents i where i.cap = $2 and i.cap_id = 0))',
    p_table, p_owner_column, p_is_counted, p_is_closed
  ) into record_count, is_closed using p_owner, p_cap, p_id;
  if record_count >= p_max or is_closed then
    raise exception 'no more % of %', p_table, p_owner using errcode = 'IP005';
  end if;
end $$;
`;

export class Caps implements MigrationInterface {
  readonly name = 'Caps0000000000012';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- the record that an intent is about to begin, where their number is limited
      alter table es.intents add column cap text, add column cap_id bigint;
      create index intents_cap on es.intents (cap) where cap is not null;
      create index rewards_live on rewards (card_id) where deleted_at is null;
      create index locations_live on locations (account_id) where deleted_at is null;
      create index posters_live on posters (account_id) where deleted_at is null;
      ${CHECK_CAP}
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop function es.check_cap(text, text, bigint, bigint, bigint, text, text);
      drop index posters_live;
      drop index locations_live;
      drop index rewards_live;
      drop index es.intents_cap;
      alter table es.intents drop column cap_id, drop column cap;
    `);
  }
}
