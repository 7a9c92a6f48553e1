import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * As before, and for the cards of one customer: while that customer is being merged, or has been, no other card may
 * begin (an id of 0 is the merge itself, which moves all cards that there are).
 */
const CHECK_CAP = `
create or replace function es.check_cap(p_kind text, p_owner bigint, p_id bigint, p_most bigint) returns void
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
    case p_kind when 'rewards' then 'card_id' when 'customer_cards' then 'customer_id' else 'account_id' end,
    case when p_kind in ('rewards', 'locations', 'posters') then 'r.deleted_at is null' else 'true' end
  ) into held using p_owner, p_cap, p_id;
  if held >= p_most or p_kind = 'customer_cards' and p_id <> 0 and (
    exists (select from es.intents i where i.cap = p_cap and i.cap_id = 0)
    or exists (select from customers c where c.id = p_owner and c.merged_into is not null)
  ) then
    raise exception 'no more % of %', p_kind, p_owner using errcode = 'IP005', detail = p_kind;
  end if;
end $$;
`;

const CHECK_CAP_BEFORE = `
create or replace function es.check_cap(p_kind text, p_owner bigint, p_id bigint, p_most bigint) returns void
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

export class MergedCustomers implements MigrationInterface {
  readonly name = 'MergedCustomers0000000000028';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table customers
        add merged_into bigint generated always as ((state -> 'mergedInto' ->> 'customerId')::bigint) stored;
      create index customers_live on customers (account_id, id) where merged_into is null;
      -- customers_searched begins with the same columns
      drop index customers_account;
      alter table customer_cards
        add merged_into bigint generated always as ((state -> 'mergedInto' ->> 'id')::bigint) stored;
      drop index customer_cards_card;
      create index customer_cards_card on customer_cards (card_id) include (merged_into);

      -- streams that a commit to several existing ones is going to write: no second such commit may begin meanwhile
      create table es.intent_streams (
        stream_id text primary key,
        intent uuid not null references es.intents (id) on delete cascade
      );
      create index intent_streams_intent on es.intent_streams (intent);
      -- claims that moved to another stream when the intent was opened, to be moved back if it is abandoned
      alter table es.intents add column moved jsonb;
      ${CHECK_CAP}
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ${CHECK_CAP_BEFORE}
      alter table es.intents drop column moved;
      drop table es.intent_streams;
      drop index customer_cards_card;
      alter table customer_cards drop column merged_into;
      create index customer_cards_card on customer_cards (card_id);
      create index customers_account on customers (account_id, id);
      drop index customers_live;
      alter table customers drop column merged_into;
    `);
  }
}
