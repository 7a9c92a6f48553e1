import type { MigrationInterface, QueryRunner } from 'typeorm';

const REWARDS = `
-- the order in which a store's rewards are listed
create index rewards_order on rewards (account_id, card_id, ((state ->> 'position')::bigint),
                                       ((state ->> 'stampsRequired')::bigint), id)
  where state ->> 'deletedAt' is null;
`;

/**
 * Terms that are rare are found through the trigrams. Terms that are common, or shorter than three
 * characters, are counted by reading what is searched of every customer of the store from an index that
 * holds it. An index entry has room for 2,700 bytes: names that take more are kept apart.
 */
const CUSTOMERS = `
alter table customers drop column search_text;
alter table customers
  add search_text text generated always as (
    case when octet_length(state ->> 'searchText') <= 2000 then state ->> 'searchText' end) stored,
  add long_search_text text generated always as (
    case when octet_length(state ->> 'searchText') > 2000 then state ->> 'searchText' end) stored;
create index customers_search on customers using gin (account_id, search_text gin_trgm_ops);
create index customers_searched on customers (account_id, id) include (search_text, phone_digits);
create index customers_long on customers (account_id, id) where long_search_text is not null;
-- the index alone answers only for pages that were vacuumed since they changed
alter table customers set (autovacuum_vacuum_scale_factor = 0.02,
                           autovacuum_vacuum_insert_scale_factor = 0.02,
                           autovacuum_analyze_scale_factor = 0.02);
`;

export class Lists implements MigrationInterface {
  readonly name = 'Lists0000000000006';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(REWARDS);
    await runner.query(CUSTOMERS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index rewards_order;
      alter table customers drop column search_text, drop column long_search_text;
      alter table customers
        add search_text text generated always as (state ->> 'searchText') stored;
      create index customers_search on customers using gin (account_id, search_text gin_trgm_ops);
      alter table customers reset (autovacuum_vacuum_scale_factor,
        autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor);
    `);
  }
}
