import { describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { MasterKeys } from '#database/master-keys.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { StoredResponses } from '#event-store/commands/stored-responses.js';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import { customerSubjects } from '#stamping/customer-subjects.js';
import { expectFailure, useSharedService } from './support/http/contract.js';
import { testConfig } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import type { Client } from './support/services/service.js';
import { enrol } from './support/fixtures/enrolled-customer.js';

const service = useSharedService();

/** A request that is silent for too long between its begin and its end, so that another takes over its key. */
async function takenOver<R>(request: () => Promise<R>): Promise<R> {
  const { query } = service.running.database;
  await query(`create function takes_over() returns trigger language plpgsql as $$
    begin new.holder := gen_random_uuid(); return new; end $$`);
  await query(`create trigger takes_over before insert on es.stored_responses
    for each row execute function takes_over()`);
  try {
    return await request();
  } finally {
    await query('drop function takes_over cascade');
  }
}

const stampUnder = (key: string, store: Client, path: string) =>
  store.send<CustomerCardDetailJson>(
    'POST',
    `${path}/stamp`,
    { stamps: 1 },
    { 'idempotency-key': key },
  );

describe('Idempotency-Key', () => {
  it('fences a request that another one has taken over', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query } = service.running.database;
    const stamp = () => stampUnder('fenced', store, path);
    const balance = async () => (await store.get<CustomerCardDetailJson>(path)).body.stamps_count;
    const fenced = await takenOver(stamp);
    expectFailure(fenced, 409, 'idempotency_in_progress');
    expect(await balance()).toBe(0);
    expectFailure(await stamp(), 409, 'idempotency_in_progress');
    await query('update es.stored_responses set leased_until = now() where status is null');
    expect((await stamp()).status).toBe(200);
    expect(await balance()).toBe(1);
  });

  it('counts once when a request and the one that has taken over its key wait for the same commit', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query, url } = service.running.database;
    const stamp = (key: string) => stampUnder(key, store, path);
    const holders = async () => {
      const { rows } = await query('select holder from es.stored_responses where status is null');
      return rows.map(({ holder }) => String(holder)).sort();
    };
    const other = new pg.Client(url);
    await other.connect();
    await other.query('begin');
    await other.query('lock table es.streams, es.intents in exclusive mode');
    const first = stamp('first');
    await eventually(holders, ({ length }) => length === 1);
    const silent = stamp('silent');
    const before = await eventually(holders, ({ length }) => length === 2);
    await query('update es.stored_responses set leased_until = now() where status is null');
    const again = stamp('silent');
    await eventually(holders, (now) => !isDeepStrictEqual(now, before));
    await other.query('commit');
    await other.end();
    expect((await first).status).toBe(200);
    expectFailure(await silent, 409, 'idempotency_in_progress');
    expect((await again).body.stamps_count).toBe(2);
    expect((await stamp('silent')).body.stamps_count).toBe(2);
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(2);
  });

  it('leaves the refusal to the request that took over the key', async () => {
    const store = await service.newStore();
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const body = { reward_id: rewards[0]?.id };
    const redeem = () =>
      store.send('POST', `${path}/redeem`, body, { 'idempotency-key': 'theirs' });
    expectFailure(await takenOver(redeem), 409, 'idempotency_in_progress');
  });

  it('outlives its first day when it is used again while what has expired is being deleted', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query, url } = service.running.database;
    const stamp = () => stampUnder('daily', store, path);
    await stamp();
    await query(`update es.stored_responses set expires_at = now() - interval '1 second'`);
    const pool = new pg.Pool({ connectionString: url, application_name: 'prune' });
    const config = testConfig(url);
    const masterKeys = new MasterKeys(pool, config);
    const responses = new StoredResponses(
      pool,
      masterKeys,
      new PersonalKeys(pool, masterKeys, customerSubjects),
    );
    const other = await pool.connect();
    await other.query('begin');
    await other.query(`update es.stored_responses set expires_at = now() + interval '1 day'`);
    const pruned = responses.prune();
    await eventually(
      async () => {
        const { rows } = await query(
          `select from pg_stat_activity where application_name = 'prune' and wait_event_type = 'Lock'`,
        );
        return rows.length;
      },
      (waiting) => waiting === 1,
    );
    await other.query('commit');
    other.release();
    await pruned;
    await pool.end();
    const { status, body } = await stamp();
    expect([status, body.stamps_count]).toEqual([200, 1]);
  });
});
