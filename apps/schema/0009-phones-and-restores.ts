import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Brings stored phone numbers into the form that their countries have given them, once, and by the dispatcher. Stores
 * when the database was restored, for readers of the feed whose place is gone.
 */
export class PhonesAndRestores implements MigrationInterface {
  readonly name = 'PhonesAndRestores0000000000009';

  async up(runner: QueryRunner): Promise<void> {
    // Nothing has a number in E.164 format that is left alone any more, so all customers are looked at.
    await runner.query('drop index customers_phone_unknown');
    await runner.query(
      `create index customers_phone_known on customers (account_id, id) where state ->> 'phone' is not null`,
    );
    await runner.query('alter table es.identity add column restored_at timestamptz');
    await runner.query(
      `insert into phone_normalizations as p (account_id, revision) select id, revision from accounts
       on conflict (account_id) do update
       set revision = excluded.revision, after_id = 0, is_repeated = true, has_conflicts = false, due_at = now()`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table es.identity drop column restored_at');
    await runner.query('drop index customers_phone_known');
    await runner.query(
      `create index customers_phone_unknown on customers (account_id, id) where state ->> 'phone' not like '+%'`,
    );
  }
}
