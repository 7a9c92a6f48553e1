import { describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { DatabasePool } from '#platform/database/database-pool.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { StoredResponses } from '#platform/event-store/commands/stored-responses.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { expectFailure, useSharedService } from '../support/http/contract.js';
import { testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import type { Client } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

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
    const response = await sendAndLoseKey(stamp);
    expectFailure(response, 409, 'idempotency_in_progress');
    expect(await store.readBalance(path)).toBe(0);
    expectFailure(await stamp(), 409, 'idempotency_in_progress');
    await query('update es.stored_responses set leased_until = now() where status is null');
    expect((await stamp()).status).toBe(200);
    expect(await store.readBalance(path)).toBe(1);
  });

  it('is executed once when it and the request that took over its key wait for the same commit', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query, ownerUrl } = service.running.database;
    const stamp = (key: string) => stampUnder(key, store, path);
    const readHolders = async () => {
      const { rows } = await query('select holder from es.stored_responses where status is null');
      return rows.map(({ holder }) => String(holder)).sort();
    };
    const otherClient = new pg.Client(ownerUrl);
    await otherClient.connect();
    await otherClient.query('begin');
    await otherClient.query('lock table es.events, es.intents in exclusive mode');
    const first = stamp('first');
    await eventually(readHolders, ({ length }) => length === 1);
    const silent = stamp('silent');
    const before = await eventually(readHolders, ({ length }) => length === 2);
    await query('update es.stored_responses set leased_until = now() where status is null');
    const again = stamp('silent');
    await eventually(readHolders, (now) => !isDeepStrictEqual(now, before));
    await otherClient.query('commit');
    await otherClient.end();
    expect((await first).status).toBe(200);
    expectFailure(await silent, 409, 'idempotency_in_progress');
    expect((await again).body.stamps_count).toBe(2);
    expect((await stamp('silent')).body.stamps_count).toBe(2);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('has its key released later when that fails at first', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const missing = path.replace(/\d+$/, '999999999');
    const { query } = service.running.database;
    const listKeys = async () =>
      (await query('select key from es.stored_responses where status is null')).rows;
    await query(`create function fails() returns trigger language plpgsql as $$
      begin raise exception 'the database is away'; end $$`);
    await query(`create trigger fails before delete on es.stored_responses
      for each row execute function fails()`);
    try {
      expectFailure(await stampUnder('of nobody', store, missing), 404, 'not_found');
      expect(await listKeys()).toHaveLength(1);
    } finally {
      await query('drop function fails cascade');
    }
    await eventually(listKeys, ({ length }) => length === 0);
  });

  it('gets 409 instead of its rejection when another request has taken over its key', async () => {
    const store = await service.newStore();
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const body = { reward_id: rewards[0]?.id };
    const redeem = () =>
      store.send('POST', `${path}/redeem`, body, { 'idempotency-key': 'theirs' });
    expectFailure(await sendAndLoseKey(redeem), 409, 'idempotency_in_progress');
  });

  it.each(['br', 'gzip', 'identity'])(
    'is replayed when it committed nothing and its large response was sent as %s',
    async (encoding) => {
      const store = await service.newStore();
      const { customerCard } = await enrol(store);
      const operation = { operation: 'stamp', customer_card_id: customerCard.id, stamps: 1 };
      const send = (accepted: string) =>
        store.send(
          'POST',
          `${store.store}/batch?dry_run=true`,
          { operations: Array.from({ length: 20 }, () => operation) },
          { 'idempotency-key': 'large', 'accept-encoding': accepted },
        );
      const first = await send(encoding);
      expect([first.status, first.headers.get('content-encoding') ?? 'identity']).toEqual([
        200,
        encoding,
      ]);
      for (const accepted of ['br', 'gzip', 'identity']) {
        const { status, headers, text } = await send(accepted);
        expect([status, headers.get('content-encoding') ?? 'identity', text]).toEqual([
          200,
          accepted,
          first.text,
        ]);
        expect(headers.get('idempotent-replayed')).toBe('true');
      }
    },
  );

  it('is replayed when its lifetime is extended while expired responses are being deleted', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query, url } = service.running.database;
    const stamp = () => stampUnder('daily', store, path);
    await stamp();
    await query(`update es.stored_responses set expires_at = now() - interval '1 second'`);
    const pool = new DatabasePool({ connectionString: url, application_name: 'prune' });
    const config = testConfig(url);
    const masterKeys = new MasterKeys(pool, config);
    const responses = new StoredResponses(
      pool,
      masterKeys,
      new PersonalKeys(pool, masterKeys, customerSubjects),
      new ProcessSession(pool, new ProcessLink(config, 'test')),
    );
    const otherClient = await pool.connect();
    await otherClient.query('begin');
    await otherClient.query(`update es.stored_responses set expires_at = now() + interval '1 day'`);
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
    await otherClient.query('commit');
    otherClient.release();
    await pruning;
    await pool.end();
    const { status, body } = await stamp();
    expect([status, body.stamps_count]).toEqual([200, 1]);
  });
});
