import type { MigrationInterface, QueryRunner } from 'typeorm';

const CHANGE = `
alter table import_rows
  -- what the row says about people, as claims have it, so that the erasure of whoever has that later finds the row
  add column claims bytea[] not null default '{}',
  -- everybody who had any of that when the row was read
  add column customer_ids bigint[] not null default '{}',
  -- what a start would do with it
  add column expected text check (expected in ('created', 'updated', 'unchanged'));
update import_rows set customer_ids = array[customer_id] where customer_id is not null and sealed is not null;
drop index import_rows_customer;
create index import_rows_people on import_rows using gin (claims, customer_ids) with (fastupdate = off)
  where sealed is not null;

-- what people had who were erased while the rows are checked
alter table imports add column erased_claims bytea[] not null default '{}';
create index imports_in_check on imports (account_id)
  where state = 'checking';

drop index imports_kept;
create index imports_kept on imports (coalesce(finished_at, created_at))
  where rows_deleted_at is null and state not in ('checking', 'running', 'undoing');

-- Few cards have a redemption, and only one changes it.
create index customer_cards_redeemed on customer_cards using gin (redeemed_reward_ids jsonb_path_ops)
  where redeemed_reward_ids <> '[]';
create view customer_cards_with_redemptions as
select id, card_id, redeemed_reward_ids from customer_cards where redeemed_reward_ids <> '[]';

-- Deletes the cells of rows that say one of these values, or are about one of these people, and counts the rows that were to
-- be applied as failed. Locks the rows in their order, as those who apply them do, and only then looks at them: a row whose
-- lock it has waited for is another version, which the statement that waited does not see.
create function es.drop_imported_cells(p_claims bytea[], p_subjects bigint[]) returns void
language sql as $$
select from public.import_rows
where sealed is not null and (claims && p_claims or customer_ids && p_subjects)
order by import_id, row for update;
with about as materialized (
  select ctid, import_id, state, expected from public.import_rows
  where sealed is not null and (claims && p_claims or customer_ids && p_subjects)
), dropped as (
  update public.import_rows r
  set sealed = null, claims = '{}', customer_ids = '{}', expected = null,
    state = case when r.state = 'pending' then 'failed' else r.state end,
    errors = coalesce(r.errors, '{"base": [
      {"code": "customer_erased", "params": {}, "message": "This customer was erased"}
    ]}')
  where r.ctid = any (array(select ctid from about))
), counts as (
  select import_id, count(*)::int as failed, count(*) filter (where expected = 'created')::int as created,
    count(*) filter (where expected = 'updated')::int as updated,
    count(*) filter (where expected = 'unchanged')::int as unchanged
  from about where state = 'pending' group by import_id
)
update public.imports i
set failed = i.failed + c.failed,
  rows_done = i.rows_done + case when i.state in ('running', 'failed') then c.failed else 0 end,
  created = i.created - case when i.state = 'ready' then c.created else 0 end,
  updated = i.updated - case when i.state = 'ready' then c.updated else 0 end,
  unchanged = i.unchanged - case when i.state = 'ready' then c.unchanged else 0 end,
  updated_at = now()
from counts c where i.id = c.import_id and i.id = any (array(select import_id from counts))
$$;

create or replace function es.erase(p_account bigint, p_subjects bigint[], p_streams text[]) returns void
language plpgsql as $$
declare
  released bytea[];
begin
  delete from personal_keys where subject_id = any (p_subjects);
  with deleted as (delete from es.claims where stream_id = any (p_streams) returning value), codes as (
    select c.value from public.customer_cards k
    join es.claims c on c.stream_id = 'customer_card-' || k.id and c.kind = 'card_code'
    where k.customer_id = any (p_subjects)
  )
  select coalesce(array_agg(value), '{}') into released from (table deleted union all table codes) own;
  insert into es.erasures (subject_id, account_id)
  select id, p_account from unnest(p_subjects) as id
  on conflict do nothing;
  -- what uploaded files say about them; of one whose rows are still being checked, the end of that drops it
  if cardinality(released) > 0 then
    update public.imports set erased_claims = erased_claims || released
    where account_id = p_account and state = 'checking';
  end if;
  perform es.drop_imported_cells(released, p_subjects);
  if cardinality(p_subjects) > 0 then perform public.raise_account_versions(array[p_account]); end if;
end $$;
`;

/** Lets an erasure reach every row of every file that says anything about the person, and finds redemptions by their reward. */
export class ImportedPeople implements MigrationInterface {
  readonly name = 'ImportedPeople0000000000010';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CHANGE);
  }

  async down(): Promise<void> {
    throw new Error('this migration cannot be reverted: restore a backup instead');
  }
}
