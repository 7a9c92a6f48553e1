import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Registry } from 'prom-client';
import { measurePostgresLog } from '#platform/event-store/postgres/measure-log.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { ReplicatedPostgres } from '../support/database/replicated-postgres.js';
import { StoppableServer } from '../support/database/stoppable-postgres.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { runNode } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const SLOW = 300_000;
/** ERR-24, with what a slow machine takes longer. */
const MAX_RESPONSE_MS = 8_500;
/** Longer than a request waits for a statement twice: what gives up its connections has opened the third set by then. */
const AWAY_MS = 14_000;
const POOL = 6;

/** @property status 0 without a response */
type Attempt = { status: number; milliseconds: number; text: string };

let servers: ReplicatedPostgres;
let proxy: DatabaseProxy;
let service: LocalService;
let store: Client;
let admin: pg.Pool;

function connectAsAdmin(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 1, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  return pool;
}

const readSyncState = async (): Promise<string | undefined> => {
  const { rows } = await admin.query<{ state: string }>(
    'select sync_state as state from pg_stat_replication',
  );
  return rows[0]?.state;
};

beforeAll(async () => {
  servers = await ReplicatedPostgres.start();
  const { url, ownerUrl } = servers.primary;
  const { status, output } = runNode(
    ['dist/apps/cli/migrate.js'],
    createTestEnvironment(url, { DATABASE_MIGRATION_URL: ownerUrl }),
  );
  if (status !== 0) throw new Error(`migration failed:\n${output}`);
  admin = connectAsAdmin(ownerUrl);
  proxy = await DatabaseProxy.to(url);
  const owner = connectAsAdmin(ownerUrl);
  service = await startService(
    { DATABASE_POOL: String(POOL) },
    { url: proxy.url, ownerUrl, query: owner.query.bind(owner), close: () => owner.end() },
  );
  store = await service.newStore();
}, SLOW);
afterAll(async () => {
  proxy?.unmute();
  await service?.stop();
  await proxy?.close();
  await admin?.end();
  await servers?.stop();
}, SLOW);

async function attempt(request: () => Promise<{ status: number; text: string }>): Promise<Attempt> {
  const startedAt = performance.now();
  const { status, text } = await request().catch(() => ({ status: 0, text: '' }));
  return { status, text, milliseconds: performance.now() - startedAt };
}

const stamp = (path: string, key: string) =>
  attempt(() =>
    store.send<CustomerCardDetailJson>(
      'POST',
      `${path}/stamp`,
      { stamps: 1 },
      { 'idempotency-key': key },
    ),
  );

/** Repeats a stamp under its key until it succeeds. @returns all attempts */
async function stampUntilDone(path: string, key = randomUUID()): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  while (attempts.at(-1)?.status !== 200) attempts.push(await stamp(path, key));
  return attempts;
}

const readReadiness = async () => {
  const response = await fetch(`${service.baseUrl}/health/ready`);
  return { status: response.status, body: (await response.json()) as { checks?: object } };
};

describe('a proxy before PostgreSQL that falls silent', () => {
  it('locks no Idempotency-Key with a claim that it delivers when it is back', async () => {
    const { path } = await enrol(store);
    const keys = Array.from({ length: 4 }, () => randomUUID());
    proxy.mute();
    const during = await Promise.all(keys.map((key) => stamp(path, key)));
    for (const { status, milliseconds } of during) {
      expect(status).toBe(503);
      expect(milliseconds).toBeLessThan(MAX_RESPONSE_MS);
    }
    proxy.unmute();
    const backAt = performance.now();
    await Promise.all(keys.map((key) => stampUntilDone(path, key)));
    // The lease of a key is 30 s.
    expect(performance.now() - backAt).toBeLessThan(15_000);
    expect(await store.readBalance(path)).toBe(keys.length);
  });
});

describe('a synchronous standby that is away', () => {
  const during: Attempt[] = [];
  const reads: Attempt[] = [];
  const sessionCounts: number[] = [];
  const writerSeconds: number[] = [];
  let paths: string[];
  let readiness: Awaited<ReturnType<typeof readReadiness>>;
  let waiting: Promise<Attempt[]>;
  let doneCount = 0;

  beforeAll(async () => {
    await admin.query(`alter system set synchronous_standby_names = '*'`);
    await admin.query('select pg_reload_conf()');
    await eventually(readSyncState, (state) => state === 'sync');
    const standbyAdmin = connectAsAdmin(servers.standby.ownerUrl);
    const standby = await StoppableServer.of({
      query: standbyAdmin.query.bind(standbyAdmin) as pg.Pool['query'],
    });
    paths = [];
    for (let i = 0; i < 8; i++) paths.push((await enrol(store)).path);
    standby.stop();
    const awayUntil = performance.now() + AWAY_MS;
    const [first = '', ...others] = paths;
    waiting = stampUntilDone(first);
    readiness = await eventually(readReadiness, ({ status }) => status === 503);
    const stampAll = async (path: string) => {
      while (performance.now() < awayUntil) {
        const result = await stamp(path, randomUUID());
        if (result.status === 200) doneCount++;
        during.push(result);
      }
    };
    const readAll = async () => {
      while (performance.now() < awayUntil) {
        reads.push(await attempt(() => store.get(first)));
        const { rows } = await admin.query<{ count: number }>(
          `select count(*)::int as count from pg_stat_activity
           where application_name like 'inkpad %' and datname = current_database()`,
        );
        sessionCounts.push(rows[0]?.count ?? 0);
        const { oldestWriter } = await measurePostgresLog(admin);
        writerSeconds.push(oldestWriter?.seconds ?? 0);
      }
    };
    await Promise.all([...others.map(stampAll), readAll()]);
    standby.goOn();
    await standbyAdmin.end();
  }, SLOW);

  it('is named by readiness', () => {
    expect(readiness.body).toMatchObject({
      status: 'unavailable',
      checks: { database: 'ok', synchronous_standby: 'unavailable' },
    });
  });

  it('refuses changes with 503 within 8 s, which name it, and none without a response', () => {
    expect(during.length).toBeGreaterThan(20);
    expect(new Set(during.map(({ status }) => status))).toEqual(new Set([503]));
    expect(Math.max(...during.map(({ milliseconds }) => milliseconds))).toBeLessThan(
      MAX_RESPONSE_MS,
    );
    expect(during.at(-1)?.text).toContain('synchronous standby');
  });

  it('lets reads go on', () => {
    expect(reads.length).toBeGreaterThan(5);
    expect(new Set(reads.map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('takes no more connections than DATABASE_POOL and one', () => {
    expect(Math.max(...sessionCounts)).toBeLessThanOrEqual(POOL + 1);
  });

  it('makes no commit that waits for it an old writer, which an alert would say to end', () => {
    expect(Math.max(...writerSeconds)).toBeLessThan(AWAY_MS / 2_000);
  });

  it('is counted, for the alert', async () => {
    const metrics = samples(await service.app.get(Registry, { strict: false }).metrics());
    const labels = { resource: 'synchronous_standby' };
    expect(metrics.value('inkpad_database_resource_errors_total', labels)).toBeGreaterThan(0);
  });

  it('is followed by the response to what had begun, and by changes, each once', async () => {
    expect((await waiting).at(-1)?.status).toBe(200);
    await eventually(readReadiness, ({ status }) => status === 200);
    await Promise.all(paths.map((path) => stampUntilDone(path)));
    const balances = await Promise.all(paths.map((path) => store.readBalance(path)));
    expect(balances).toEqual([2, ...paths.slice(1).map(() => 1)]);
    expect(doneCount).toBe(0);
  });
});

describe('a primary that freezes, and is left for its synchronous standby', () => {
  it('loses and doubles nothing that was acknowledged', async () => {
    const { path } = await enrol(store);
    const primary = await StoppableServer.of({ query: admin.query.bind(admin) });
    let isOver = false;
    let stampCount = 0;
    const callers = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        await stampUntilDone(path);
        stampCount++;
      }
    });
    await eventually(
      () => stampCount,
      (count) => count > 10,
    );
    primary.stop();
    const promoted = connectAsAdmin(servers.standby.ownerUrl);
    try {
      await promoted.query('select pg_promote()');
      await promoted.query('alter system reset synchronous_standby_names');
      await promoted.query('select pg_reload_conf()');
      const before = stampCount;
      proxy.switchTo(servers.standby.url);
      await eventually(
        () => stampCount,
        (count) => count > before + 10,
      );
      isOver = true;
      await Promise.all(callers);
      expect(await store.readBalance(path)).toBe(stampCount);
    } finally {
      isOver = true;
      primary.goOn();
      await promoted.end();
    }
  });
});
