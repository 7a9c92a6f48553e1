import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import {
  createDatabaseClient,
  DatabaseClient,
  isFailureToConnect,
  StandbyError,
} from '#platform/database/database-client.js';
import { DatabasePool } from '#platform/database/database-pool.js';
import { LOCKS } from '#platform/database/locks.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { createTestEnvironment, testConfig } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { ReplicatedPostgres } from '../support/database/replicated-postgres.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import type { Failure } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { runNode } from '../support/services/program.js';
import {
  startService,
  type ApiResponse,
  type Client,
  type LocalService,
} from '../support/services/service.js';
import { startDispatcher, subscribe } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
/** How long the name still leads to the demoted primary, and how many requests fail meanwhile, at least. */
const STALE_NAME_MS = 4_000;
const MIN_FAILURES = 20;

/** @property status 0 without a response */
type Attempt = { at: number; isStamp: boolean; status: number; response?: ApiResponse<Failure> };

let servers: ReplicatedPostgres;
let proxy: DatabaseProxy;
let service: LocalService;
let store: Client;
let path: string;
let receiver: Receiver;
let admins: Record<'former' | 'current', pg.Client> | undefined;

beforeAll(async () => {
  servers = await ReplicatedPostgres.start();
  const { url, ownerUrl } = servers.primary;
  const { status, output } = runNode(['dist/apps/cli/migrate.js'], {
    DATABASE_URL: url,
    DATABASE_MIGRATION_URL: ownerUrl,
    MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  });
  if (status !== 0) throw new Error(`migration failed:\n${output}`);
  proxy = await DatabaseProxy.to(url);
  const owner = new pg.Pool({ connectionString: ownerUrl, max: 1 });
  owner.on('error', () => undefined);
  service = await startService(
    { WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' },
    { url: proxy.url, ownerUrl, query: owner.query.bind(owner), close: () => owner.end() },
  );
  store = await service.newStore();
  ({ path } = await enrol(store));
  receiver = await Receiver.start();
  await subscribe(store, receiver);
  for (let i = 0; i < 2; i++) await startDispatcher(service);
}, SLOW);
afterAll(async () => {
  await admins?.former.end();
  await admins?.current.end();
  await service?.stop();
  await receiver?.stop();
  await proxy?.close();
  await servers?.stop();
}, SLOW);

async function connectAsAdmin(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Lists the leaders' locks that are held on a server. */
async function listLocks(admin: pg.Client): Promise<number[]> {
  const { rows } = await admin.query<{ objid: number }>(
    `select objid::int from pg_locks
     where locktype = 'advisory' and granted and objsubid = 1 and objid between 727000 and 728000`,
  );
  return rows.map(({ objid }) => objid);
}

/** Stamps and reads all the time until it is stopped. A stamp is repeated under its key until it succeeds. */
function startLoad() {
  const attempts: Attempt[] = [];
  let isStopped = false;
  let stampCount = 0;
  const attempt = async (method: 'GET' | 'POST', key: string): Promise<number> => {
    const isStamp = method === 'POST';
    const at = performance.now();
    const sent = isStamp
      ? store.send<Failure>(method, `${path}/stamp`, { stamps: 1 }, { 'idempotency-key': key })
      : store.get<Failure>(path);
    const response = await sent.catch(() => undefined);
    const status = response?.status ?? 0;
    attempts.push({ at, isStamp, status, ...(response && { response }) });
    await new Promise((resolve) => setTimeout(resolve, 20));
    return status;
  };
  const stampAll = async () => {
    while (!isStopped) {
      const key = randomUUID();
      while ((await attempt('POST', key)) !== 200);
      stampCount++;
    }
  };
  const readAll = async () => {
    while (!isStopped) await attempt('GET', '');
  };
  const running = [stampAll(), readAll()];
  return {
    attempts,
    countStamps: () => stampCount,
    stop: async () => {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

const readReadiness = async () => (await fetch(`${service.baseUrl}/health/ready`)).status;

describe('a switchover whose name leads to the demoted primary for some seconds', () => {
  let load: ReturnType<typeof startLoad>;
  let switchedAt: number;
  const lockSamples: number[][] = [];
  const readinessSamples: number[] = [];

  beforeAll(async () => {
    await eventually(
      async () => listLocksOnce(servers.primary.ownerUrl),
      (locks) => locks.includes(LOCKS.fanOut),
    );
    load = startLoad();
    servers = await servers.switchOver();
    admins = {
      former: await connectAsAdmin(servers.standby.ownerUrl),
      current: await connectAsAdmin(servers.primary.ownerUrl),
    };
    const staleUntil = performance.now() + STALE_NAME_MS;
    const countFailures = () => load.attempts.filter(({ status }) => status !== 200).length;
    while (
      performance.now() < staleUntil ||
      lockSamples.length <= 10 ||
      countFailures() <= MIN_FAILURES
    ) {
      lockSamples.push(await listLocks(admins.former), await listLocks(admins.current));
      readinessSamples.push(await readReadiness());
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    proxy.switchTo(servers.primary.url);
    switchedAt = performance.now();
  }, SLOW);
  afterAll(() => load.stop());

  it('leaves no connection to the demoted primary, and no leader there', async () => {
    expect(lockSamples.length).toBeGreaterThan(10);
    expect(lockSamples.flat()).toEqual([]);
  });

  it('makes the api not ready', () => {
    expect(new Set(readinessSamples)).toEqual(new Set([503]));
  });

  it('is followed by the api, and by leaders on the new primary only', async () => {
    const listSuccesses = () =>
      load.attempts.filter(
        ({ at, status, isStamp }) => at > switchedAt && status === 200 && isStamp,
      );
    await eventually(listSuccesses, ({ length }) => length > 20);
    await eventually(readReadiness, (status) => status === 200);
    if (!admins) throw new Error('there was no switchover');
    const { former, current } = admins;
    const locks = await eventually(
      () => listLocks(current),
      (numbers) => numbers.includes(LOCKS.fanOut),
    );
    expect(new Set(locks).size).toBe(locks.length);
    expect(await listLocks(former)).toEqual([]);
  });

  it('causes 503 with Retry-After, or 409 where the first request is in progress, and never a 500', async () => {
    await load.stop();
    const failures = load.attempts.filter(({ status }) => status !== 200);
    expect(failures.length).toBeGreaterThan(MIN_FAILURES);
    // A change whose outcome is unknown gets no response.
    const responses = failures.flatMap(({ response }) => response ?? []);
    expect(failures.length - responses.length).toBeLessThan(3);
    for (const response of responses) {
      expect([
        [503, 'unavailable'],
        [409, 'idempotency_in_progress'],
      ]).toContainEqual([response.status, response.body.code]);
      expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
  });

  it('loses and doubles no stamp, and each is sent', async () => {
    const { body } = await store.get<{ stamps_count: number }>(path);
    expect(body.stamps_count).toBe(load.countStamps());
    await eventually(
      () => receiver.events.length,
      (count) => count === load.countStamps(),
    );
  });
});

describe('a server that has become a standby', () => {
  it('is refused by new connections, except by those that only read', async () => {
    const refused = createDatabaseClient(servers.standby.url, 'test');
    const error = await refused.connect().catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(StandbyError);
    expect(isFailureToConnect(error)).toBe(true);
    const reader = createDatabaseClient(servers.standby.url, 'test', { acceptsStandby: true });
    await reader.connect();
    expect((await reader.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await reader.end();
  });

  it('is refused at the start by a process that does not wait for the primary', () => {
    const environment = createTestEnvironment(servers.standby.url, { START_WAIT_SECONDS: '0' });
    const { status, output } = runNode(['dist/apps/api/main.js'], environment);
    expect(status).toBe(1);
    expect(output).toContain('cannot be used: it is a standby, which cannot be written to.');
  });

  it('is left by the link of a process at its next poll, with all locks', async () => {
    // It is open, as if the server had become a standby afterwards.
    const opening = jest
      .spyOn(
        DatabaseClient.prototype as unknown as { openSession: () => Promise<void> },
        'openSession',
      )
      .mockResolvedValue();
    const link = new ProcessLink(testConfig(servers.standby.url), 'test');
    const causes: unknown[] = [];
    link.onLost((cause) => causes.push(cause));
    let heldLocks: number[] = [];
    await link.onOpen(async (connection) => {
      opening.mockRestore();
      await connection.query({
        text: 'select pg_try_advisory_lock($1)',
        values: [LOCKS.fanOut],
      });
      heldLocks = await listLocksOnce(servers.standby.ownerUrl);
    });
    await link.poll();
    expect(heldLocks).toEqual([LOCKS.fanOut]);
    expect(causes[0]).toBeInstanceOf(StandbyError);
    expect(link.current).toBeUndefined();
    await eventually(
      () => listLocksOnce(servers.standby.ownerUrl),
      (locks) => locks.length === 0,
    );
    await link.onApplicationShutdown();
  });

  it('says nothing about the open connections of a pool, which go on', async () => {
    const { primary, standby } = servers;
    const proxyOfPool = await DatabaseProxy.to(primary.url);
    const pool = new DatabasePool({ connectionString: proxyOfPool.url, max: 3 });
    const isReplica = async () => {
      const { rows } = await pool.query<{ yes: boolean }>('select pg_is_in_recovery() as yes');
      return rows[0]?.yes;
    };
    const clients = await Promise.all([pool.connect(), pool.connect()]);
    proxyOfPool.alternate(standby.url);
    await expect(pool.connect()).rejects.toThrow(StandbyError);
    for (const client of clients) client.release();
    for (let i = 0; i < 10; i++) expect(await isReplica()).toBe(false);
    await pool.end();
    await proxyOfPool.close();
  });

  it('is passed by when the name leads to it and to the primary in turn', async () => {
    const { primary, standby } = servers;
    const proxyOfPool = await DatabaseProxy.to(primary.url);
    proxyOfPool.alternate(standby.url, primary.url);
    const pool = new DatabasePool({ connectionString: proxyOfPool.url, max: 4 });
    const clients = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
    for (const client of clients) client.release(true);
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await proxyOfPool.close();
  });
});

async function listLocksOnce(url: string): Promise<number[]> {
  const admin = await connectAsAdmin(url);
  try {
    return await listLocks(admin);
  } finally {
    await admin.end();
  }
}
