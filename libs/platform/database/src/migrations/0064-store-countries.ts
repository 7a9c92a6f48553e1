import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The countries of stores, and how far their customers' phone numbers have been put into the form of these. */
export class StoreCountries implements MigrationInterface {
  readonly name = 'StoreCountries0000000000064';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table accounts add country text generated always as (state ->> 'country') stored;
      create index accounts_revision on accounts (id) include (revision);
      -- those who may have to be put into another form
      create index customers_phone_unknown on customers (account_id, id)
        where state ->> 'phone' not like '+%';

      create table phone_passes (
        account_id bigint primary key,
        -- of the store, to whose country the numbers up to after_id have been adapted
        revision bigint not null,
        after_id bigint not null default 0,
        -- commands that have read the former country may be committed after the pass has gone by
        goes_again boolean not null default true,
        -- another customer holds the number of somebody
        has_conflicts boolean not null default false,
        -- null: done
        due_at timestamptz default now()
      );
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table phone_passes;
      drop index customers_phone_unknown, accounts_revision;
      alter table accounts drop country;
    `);
  }
}
