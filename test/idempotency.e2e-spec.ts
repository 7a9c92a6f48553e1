import { describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { MasterKeys } from '#database/master-keys.js';
import { ProcessSession } from '#database/process-session.js';
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

/** Sends a request whose key is taken over by another holder before it ends. */
async function sendAndLoseKey<R>(request: () => Promise<R>): Promise<R> {
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

describe('a request with an Idempotency-Key', () => {
  it('gets 409 and changes nothing when another request has taken over its key', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query } = service.running.database;
    const stamp = () => stampUnder('fenced', store, path);
    const readBalance = async () =>
      (await store.get<CustomerCardDetailJson>(path)).body.stamps_count;
    const response = await sendAndLoseKey(stamp);
    expectFailure(response, 409, 'idempotency_in_progress');
    expect(await readBalance()).toBe(0);
    expectFailure(await stamp(), 409, 'idempotency_in_progress');
    await query('update es.stored_responses set leased_until = now() where status is null');
    expect((await stamp()).status).toBe(200);
    expect(await readBalance()).toBe(1);
  });

  it('is executed once when it and the request that took over its key wait for the same commit', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query, url } = service.running.database;
    const stamp = (key: string) => stampUnder(key, store, path);
    const readHolders = async () => {
      const { rows } = await query('select holder from es.stored_responses where status is null');
      return rows.map(({ holder }) => String(holder)).sort();
    };
    const other = new pg.Client(url);
    await other.connect();
    await other.query('begin');
    await other.query('lock table es.streams, es.intents in exclusive mode');
    const first = stamp('first');
    await eventually(readHolders, ({ length }) => length === 1);
    const silent = stamp('silent');
    const before = await eventually(readHolders, ({ length }) => length === 2);
    await query('update es.stored_responses set leased_until = now() where status is null');
    const again = stamp('silent');
    await eventually(readHolders, (now) => !isDeepStrictEqual(now, before));
    await other.query('commit');
    await other.end();
    expect((await first).status).toBe(200);
    expectFailure(await silent, 409, 'idempotency_in_progress');
    expect((await again).body.stamps_count).toBe(2);
    expect((await stamp('silent')).body.stamps_count).toBe(2);
    expect((await store.get<CustomerCardDetailJson>(path)).body.stamps_count).toBe(2);
  });

  it('gets 409 instead of its refusal when another request has taken over its key', async () => {
    const store = await service.newStore();
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const body = { reward_id: rewards[0]?.id };
    const redeem = () =>
      store.send('POST', `${path}/redeem`, body, { 'idempotency-key': 'theirs' });
    expectFailure(await sendAndLoseKey(redeem), 409, 'idempotency_in_progress');
  });

  it('is replayed when its lifetime is extended while expired responses are being deleted', async () => {
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
      new ProcessSession(pool, config),
    );
    const other = await pool.connect();
    await other.query('begin');
    await other.query(`update es.stored_responses set expires_at = now() + interval '1 day'`);
    const pruning = responses.prune();
    await eventually(
      async () => {
        const { rows } = await query(
          `select from pg_stat_activity where application_name = 'prune' and wait_event_type = 'Lock'`,
        );
        return rows.length;
      },
      (count) => count === 1,
    );
    await other.query('commit');
    other.release();
    await pruning;
    await pool.end();
    const { status, body } = await stamp();
    expect([status, body.stamps_count]).toEqual([200, 1]);
  });
});
