import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What other contexts read of a row is a column. Text, because no cast from text to a time is immutable. */
export class ColumnsOfRows implements MigrationInterface {
  readonly name = 'ColumnsOfRows0000000000010';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table accounts
        add name text generated always as (state ->> 'name') stored,
        add display_name text generated always as (coalesce(state ->> 'storeName', state ->> 'name')) stored,
        add locale text generated always as (state ->> 'locale') stored,
        add time_zone text generated always as (state ->> 'timeZone') stored;
      alter table cards add name text generated always as (state ->> 'name') stored;
      alter table rewards add deleted_at text generated always as (state ->> 'deletedAt') stored;
      alter table locations
        add deleted_at text generated always as (state ->> 'deletedAt') stored,
        add place_precision text generated always as (state ->> 'precision') stored;
      alter table posters
        add deleted_at text generated always as (state ->> 'deletedAt') stored,
        add title text generated always as (state ->> 'title') stored,
        add active boolean generated always as ((state ->> 'active')::boolean) stored,
        add paper_size text generated always as (state ->> 'paperSize') stored;
      alter table customer_cards
        add redeemed_reward_ids jsonb generated always as (state -> 'redeemedRewardIds') stored;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table customer_cards drop redeemed_reward_ids;
      alter table posters drop deleted_at, drop title, drop active, drop paper_size;
      alter table locations drop deleted_at, drop place_precision;
      alter table rewards drop deleted_at;
      alter table cards drop name;
      alter table accounts drop name, drop time_zone, drop locale, drop display_name;
    `);
  }
}
