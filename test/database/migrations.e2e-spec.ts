import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { getMigrationNames, migrate, type Migration } from '#platform/database/migrate.js';
import { migrations } from '../../apps/schema/migrations.js';
import { testConfig, createTestEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Migrations of a later release: another derived column, and another read model. */
class Vouchers implements MigrationInterface {
  readonly name = 'Vouchers9999999999999';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table customer_cards add stamps_count int;
      drop function es.derive_customer_cards(jsonb);
      create function es.derive_customer_cards(state jsonb) returns table (
        customer_id bigint, card_id bigint, code text, uuid uuid, redeemed_reward_ids jsonb, balance bigint,
        unlocked_count bigint, merged_into bigint, stamps_count int
      ) language sql immutable as $$
      select (state ->> 'customerId')::bigint, (state ->> 'cardId')::bigint, state ->> 'code', (state ->> 'uuid')::uuid,
        state -> 'redeemedRewardIds', (state ->> 'stampsCount')::bigint, jsonb_array_length(state -> 'unlocked'),
        (state -> 'mergedInto' ->> 'id')::bigint, (state ->> 'stampsCount')::int
      $$;
      update customer_cards c
      set stamps_count = (select d.stamps_count from es.derive_customer_cards(c.state) d);
      create sequence vouchers_id as bigint;
      create table vouchers (
        id bigint primary key,
        account_id bigint not null,
        revision bigint not null,
        hash bytea not null,
        projection_version int not null,
        state jsonb not null
      ) with (fillfactor = 70);
      call es.create_read_model_writers();
    `);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('never reverted'));
  }
}

let service: LocalService;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service?.stop());

describe('migrations', () => {
  it('are listed in the order of their numbers, which have no gaps', () => {
    const numbers = getMigrationNames(migrations).map((name) => Number(name.slice(-13)));
    expect(numbers).toEqual(migrations.map((_, i) => i + 1));
  });

  it('of a later release run on a database with data while the service uses it', async () => {
    const card = await enrol(store, { rewards: [['Cake', 3]] });
    await card.stamp(4);
    const laterMigrations: Migration[] = [...migrations, Vouchers];
    const config = testConfig(service.database.url, {
      DATABASE_MIGRATION_URL: service.database.ownerUrl,
    });
    expect(await migrate(config, laterMigrations)).toEqual(['Vouchers9999999999999']);
    expect(await migrate(config, laterMigrations)).toEqual([]);
    const readStampCounts = async () =>
      (await service.database.query('select id, stamps_count from customer_cards')).rows;
    expect(await readStampCounts()).toEqual([{ id: card.customerCard.id, stamps_count: 4 }]);
    await card.stamp(2);
    expect(await readStampCounts()).toEqual([{ id: card.customerCard.id, stamps_count: 6 }]);
    const ready = await fetch(`${service.baseUrl}/health/ready`);
    expect(ready.status).toBe(200);
    const environment = createTestEnvironment(service.database.url, service.environment);
    expect(await startProgram('dist/apps/cli/verify.js', environment).exitCode).toBe(0);
  });
});
