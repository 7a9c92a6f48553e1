import { describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { clock } from '#platform/kernel/clock.js';
import { UnavailableError } from '#platform/kernel/errors.js';
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
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { openStore } from '../support/database/event-store.js';
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

  it('does not lock its key with a claim that arrives late, whether the key is new or not', async () => {
    const { url, query } = service.running.database;
    const { responses, close } = await openStore(testConfig(url));
    const body = Buffer.from('body');
    const claim = (key: Buffer) =>
      responses.claimKey({ key, holder: randomUUID(), status: 200, isStored: false }, body);
    const listLeases = async (key: Buffer) => {
      const { rows } = await query<{ ended: boolean }>(
        'select leased_until <= now() as ended from es.stored_responses where key = $1',
        [key],
      );
      return rows.map(({ ended }) => ended);
    };
    const [fresh, ended] = [responses.fingerprint(randomUUID()), responses.fingerprint('ended')];
    try {
      // As often as PostgreSQL needs to choose a plan for good.
      for (let i = 0; i < 12; i++) await claim(responses.fingerprint(randomUUID()));
      for (let i = 0; i < 12; i++) await claim(ended);
      await query('update es.stored_responses set leased_until = now() where key = $1', [ended]);
      // The claims of a process whose clock is ten seconds behind arrive as late as those of a network that was silent.
      const nowMs = clock.getMs();
      jest.spyOn(clock, 'getMs').mockReturnValue(nowMs - 10_000);
      await expect(claim(fresh)).rejects.toThrow(UnavailableError);
      await expect(claim(ended)).rejects.toThrow(UnavailableError);
      expect(await listLeases(fresh)).toEqual([]);
      expect(await listLeases(ended)).toEqual([true]);
      jest.restoreAllMocks();
      expect(await claim(fresh)).toEqual({ state: 'ours' });
      expect(await claim(ended)).toEqual({ state: 'ours' });
    } finally {
      jest.restoreAllMocks();
      responses.onModuleDestroy();
      await close();
    }
  });

  it('has its key released when the response to its claim is lost', async () => {
    const { url, ownerUrl, query } = service.running.database;
    const proxy = await DatabaseProxy.to(url);
    const { responses, close } = await openStore(testConfig(proxy.url));
    const key = responses.fingerprint(randomUUID());
    const count = async () => {
      const { rowCount } = await query('select from es.stored_responses where key = $1', [key]);
      return rowCount;
    };
    const otherClient = new pg.Client(ownerUrl);
    await otherClient.connect();
    // Not over the client in a transaction, which would see the same activity until its end.
    const countClaiming = async () => {
      const { rowCount } = await query(
        `select from pg_stat_activity where datname = current_database()
         and pid <> pg_backend_pid() and state = 'active' and query like '%claim_new_idempotency_keys%'`,
      );
      return rowCount;
    };
    try {
      // The server executes the claim after its connection is cut.
      await otherClient.query('begin');
      await otherClient.query('lock table es.stored_responses in exclusive mode');
      const keyed = { key, holder: randomUUID(), status: 200, isStored: false };
      const claim = responses.claimKey(keyed, Buffer.from('body'));
      const outcome = claim.catch((error: unknown) => error);
      await eventually(countClaiming, (claiming) => claiming === 1);
      proxy.switchTo(url);
      expect(await outcome).toBeInstanceOf(UnavailableError);
      expect(await countClaiming()).toBe(1);
      await otherClient.query('commit');
      await eventually(countClaiming, (claiming) => claiming === 0);
      await eventually(count, (rowCount) => rowCount === 0);
      const again = await responses.claimKey(
        { ...keyed, holder: randomUUID() },
        Buffer.from('body'),
      );
      expect(again).toEqual({ state: 'ours' });
    } finally {
      await otherClient.end();
      responses.onModuleDestroy();
      await close();
      await proxy.close();
    }
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
