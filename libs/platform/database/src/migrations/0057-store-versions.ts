import type { MigrationInterface, QueryRunner } from 'typeorm';
import { RECORD, WRITE_ROWS } from '../row-table.js';

const ERASE = (raise: string) => `
  create or replace function es.erase(p_account bigint, p_subjects bigint[], p_streams text[]) returns void
  language plpgsql as $$
  begin
    delete from personal_keys where subject_id = any (p_subjects);
    delete from es.claims where stream_id = any (p_streams);
    insert into es.erasures (subject_id, account_id)
    select id, p_account from unnest(p_subjects) as id
    on conflict do nothing;${raise}
  end $$;`;

/** A number that grows with whatever a card template is made from, and with whatever happens to a customer's key. */
export class StoreVersions implements MigrationInterface {
  readonly name = 'StoreVersions0000000000057';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table account_versions (
        account_id bigint primary key,
        version bigint not null
      ) with (fillfactor = 70);
      insert into account_versions (account_id, version) select id, 1 from accounts;

      create function raise_account_versions(p_accounts bigint[]) returns void language sql as $$
        -- in order, so that two calls cannot deadlock; by full names, as a rebuild has a search path of its own
        insert into public.account_versions as v (account_id, version)
        select distinct id, 1 from unnest(p_accounts) as id order by id
        on conflict (account_id) do update set version = v.version + 1
      $$;
      ${ERASE(`
    if cardinality(p_subjects) > 0 then perform public.raise_account_versions(array[p_account]); end if;`)}
      ${WRITE_ROWS}
      ${RECORD}`);
  }

  /** Deliberately impossible: the functions that write rows raise versions. */
  async down(): Promise<void> {
    throw new Error(
      'versions of stores are not taken back by a migration: restore a backup instead',
    );
  }
}
