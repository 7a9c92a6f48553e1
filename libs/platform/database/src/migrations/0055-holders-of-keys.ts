import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A request and the one that has taken over its key may wait for the same commit: one of them has lost the key although
 * the other one holds it. IP004 names the holders that lost theirs.
 */
const REFUSE = `
  select string_agg(asked.holder::text, ',') into losers from asked where not exists (
    select from held where held.key = asked.key and held.holder = asked.holder);
  if losers is not null then
    raise exception 'taken over' using errcode = 'IP004', detail = losers;
  end if;`;

const functions = (refuse: string) => `
create or replace function es.keep_outcomes(p_outcomes jsonb, p_streams text[]) returns void language plpgsql as $$
declare
  losers text;
begin
  if p_outcomes is null then return; end if;
  with asked as (
    select decode(x.k, 'hex') as key, x.o as holder, x.c as status, decode(x.b, 'hex') as answer
    from jsonb_to_recordset(p_outcomes) as x(k text, o uuid, s text, c int, b text)
    where p_streams is null or x.s = any (p_streams)
  ), held as (
    update es.outcomes o set status = asked.status, answer = asked.answer, intent = null
    from asked where o.key = asked.key and o.holder = asked.holder
    returning o.key, o.holder
  )${refuse}
end $$;

create or replace function es.bind_outcomes(p_outcomes jsonb, p_intent uuid) returns void language plpgsql as $$
declare
  losers text;
begin
  if p_outcomes is null then return; end if;
  with asked as (
    select decode(x.k, 'hex') as key, x.o as holder
    from jsonb_to_recordset(p_outcomes) as x(k text, o uuid)
  ), held as (
    update es.outcomes o set intent = p_intent
    from asked where o.key = asked.key and o.holder = asked.holder and o.status is null
      and o.intent is null
    returning o.key, o.holder
  )${refuse}
end $$;
`;

export class HoldersOfKeys implements MigrationInterface {
  readonly name = 'HoldersOfKeys0000000000055';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(functions(REFUSE));
  }

  /** Deliberately impossible. */
  async down(): Promise<void> {
    throw new Error('the functions before it are not brought back: restore a backup instead');
  }
}
