import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Lets the database note which stores have got a country, with the commit that gives it to them. Looking for them took
 * all stores.
 */
export class PhonePassesByDueTime implements MigrationInterface {
  readonly name = 'PhonePassesByDueTime0000000000069';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create index phone_passes_due on phone_passes (due_at) where due_at is not null;

      create function start_phone_pass() returns trigger language plpgsql as $$
      begin
        insert into public.phone_passes as p (account_id, revision) values (new.id, new.revision)
        on conflict (account_id) do update
        set revision = excluded.revision, after_id = 0, goes_again = true, has_conflicts = false, due_at = now();
        return null;
      end $$;

      -- a store that is taken over from another instance may have numbers of before its country
      create trigger phone_pass_of_new after insert on accounts
        for each row when (new.country is not null) execute function start_phone_pass();
      create trigger phone_pass_of_country after update on accounts
        for each row when (new.country is not null and new.country is distinct from old.country)
        execute function start_phone_pass();

      delete from phone_passes;
      insert into phone_passes (account_id, revision) select id, revision from accounts where country is not null;
      -- was read by the statement that looked through all stores
      drop index accounts_revision;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create index accounts_revision on accounts (id) include (revision);
      drop trigger phone_pass_of_country on accounts;
      drop trigger phone_pass_of_new on accounts;
      drop function start_phone_pass;
      drop index phone_passes_due;
    `);
  }
}
