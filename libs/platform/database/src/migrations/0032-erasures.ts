import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the end of a person's data leaves to be done and to be known (docs/adr/0038). */
export class Erasures implements MigrationInterface {
  readonly name = 'Erasures0000000000032';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- who was erased, without a word about them
      create table es.erasures (
        subject_id bigint primary key,
        account_id bigint not null,
        erased_at timestamptz not null default now(),
        -- the planner's statistics may still hold values of their row
        in_statistics boolean not null default true
      );
      create index erasures_in_statistics on es.erasures (subject_id) where in_statistics;

      -- p_streams: the customers' own, which hold their e-mail address, phone number and references as claims
      create function es.erase(p_account bigint, p_subjects bigint[], p_streams text[]) returns void
      language plpgsql as $$
      begin
        delete from personal_keys where subject_id = any (p_subjects);
        delete from es.claims where stream_id = any (p_streams);
        insert into es.erasures (subject_id, account_id)
        select id, p_account from unnest(p_subjects) as id
        on conflict do nothing;
      end $$;

      -- With the owner's rights, because only an owner may analyze. It reads a sample of the table.
      create function analyze_erased() returns bigint
      language plpgsql security definer set search_path = public, pg_temp as $$
      declare
        before bigint[] := array(select subject_id from es.erasures where in_statistics);
      begin
        if cardinality(before) = 0 then return 0; end if;
        analyze customers;
        update es.erasures set in_statistics = false where subject_id = any (before);
        return cardinality(before);
      end $$;
      revoke execute on function analyze_erased from public;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop function analyze_erased();
      drop function es.erase(bigint, bigint[], text[]);
      drop table es.erasures;
    `);
  }
}
