import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Counts under a lock that is held until the transaction ends: two that come at once for the last place follow one
 * another, and the second sees the first. Advisory, so that a wait for it never holds up who reads the log.
 */
const CHECK_CAP = `
create function es.check_cap(p_kind text, p_owner bigint, p_id bigint, p_most bigint) returns void
language plpgsql as $$
declare
  p_cap text := p_kind || ' ' || p_owner;
  held bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_cap, 727012));
  execute format(
    'select count(*) from (
       select r.id from %I r where r.%I = $1 and %s
       union
       select i.cap_id from es.intents i where i.cap = $2
     ) held where held.id <> $3',
    p_kind,
    case p_kind when 'rewards' then 'card_id' else 'account_id' end,
    case when p_kind in ('rewards', 'locations', 'posters') then 'r.deleted_at is null' else 'true' end
  ) into held using p_owner, p_cap, p_id;
  if held >= p_most then
    raise exception 'no more % of %', p_kind, p_owner using errcode = 'IP005', detail = p_kind;
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
      drop function es.check_cap(text, bigint, bigint, bigint);
      drop index posters_live;
      drop index locations_live;
      drop index rewards_live;
      drop index es.intents_cap;
      alter table es.intents drop column cap_id, drop column cap;
    `);
  }
}
