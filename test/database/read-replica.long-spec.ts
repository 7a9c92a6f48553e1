import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { Registry } from 'prom-client';
import { query } from '#platform/database/connection.js';
import { DatabaseWait, runWithWait } from '#platform/database/database-waits.js';
import { ReportDatabase } from '#platform/database/report-database.service.js';
import { OverloadError } from '#platform/kernel/errors.js';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { startStandby, type Standby } from '../support/database/standby.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { runNode, type Program } from '../support/services/program.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

let primary: EmbeddedPostgres;
let standby: Standby;
let service: LocalService;
let store: Client;
let dispatcher: Program;

beforeAll(async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-primary-'));
  chmodSync(dataDir, 0o711);
  const settings = { wal_keep_size: '64MB' };
  const first = await startPostgres({ dataDir, tie: true, settings });
  const migrated = runNode(
    ['dist/apps/cli/migrate.js'],
    createTestEnvironment(first.url, { DATABASE_MIGRATION_URL: first.ownerUrl }),
  );
  if (migrated.status !== 0) throw new Error(migrated.output);
  await first.stop();
  ({ primary, standby } = await startStandby(first, () =>
    startPostgres({ dataDir, port: first.port, tie: true, settings }),
  ));
  const pool = new pg.Pool({ connectionString: primary.ownerUrl, max: 1, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  service = await startService(
    { DATABASE_READ_URL: standby.url },
    {
      url: primary.url,
      ownerUrl: primary.ownerUrl,
      query: pool.query.bind(pool),
      close: () => pool.end(),
    },
  );
  dispatcher = await startDispatcher(service);
  store = await service.newStore();
});
afterAll(async () => {
  await dispatcher?.kill('SIGTERM');
  await service?.stop();
  await standby?.stop().catch(() => undefined);
  await primary?.remove();
});

/** How many reads each server had so far. */
async function countReads(): Promise<{ replica: number; primary: number }> {
  const metrics = samples(await service.app.get(Registry, { strict: false }).metrics());
  const count = (server: string) => metrics.value('inkpad_report_reads_total', { server }) ?? 0;
  return { replica: count('replica'), primary: count('primary') };
}

const readStatistics = async () => (await store.get(`${store.store}/statistics`)).status;

const exportCustomers = async () =>
  (await store.get(`${store.store}/exports/customers.ndjson`)).text;

it('reads statistics and exports from the standby, with everything committed before', async () => {
  for (let i = 0; i < 5; i++) {
    const { customer } = await enrol(store);
    expect(await exportCustomers()).toContain(`"id":${customer.id},`);
    expect(await readStatistics()).toBe(200);
  }
  const reads = await countReads();
  expect(reads.replica).toBeGreaterThan(8);
  expect(reads.primary).toBe(0);
});

it.each(['customer_cards', 'history', 'redemptions'])(
  'reads the export of %s from the standby',
  async (kind) => {
    await enrol(store);
    const before = await countReads();
    // The history is read from its table once the dispatcher has written it.
    const after = await eventually(
      async () => {
        expect((await store.get(`${store.store}/exports/${kind}.csv`)).status).toBe(200);
        return countReads();
      },
      ({ replica }) => replica > before.replica,
    );
    expect(after.primary).toBe(before.primary);
  },
);

it('reads nothing else from the standby', async () => {
  const before = await countReads();
  const { path } = await enrol(store);
  for (const request of [
    await store.stamp(path),
    await store.get(path),
    await store.get(`${store.store}/customers`),
    await store.get(`${path}/events`),
  ]) {
    expect([200, 201]).toContain(request.status);
  }
  expect(await countReads()).toEqual(before);
  const { rows } = await standby.query<{ name: string }>(
    `select distinct application_name as name from pg_stat_activity
     where backend_type = 'client backend' and usename = $1`,
    [new URL(standby.url).username],
  );
  expect(rows).toEqual([{ name: expect.stringMatching(/^inkpad reports /) }]);
});

it('reads the standby after the queue of its connections has rejected a report', async () => {
  const reports = service.app.get(ReportDatabase, { strict: false });
  const before = await countReads();
  let isGone = false;
  const wait = new DatabaseWait(undefined, () => isGone);
  Object.assign(wait, { owner: 1, readsMuch: true });
  const report = runWithWait(wait, () =>
    reports.read(async (pool) => {
      isGone = true;
      return query(pool, { text: 'select 1' });
    }),
  );
  await expect(report).rejects.toThrow(OverloadError);
  expect(await readStatistics()).toBe(200);
  const after = await countReads();
  expect(after.primary).toBe(before.primary);
  expect(after.replica).toBeGreaterThan(before.replica);
});

it('reads the primary while the standby is too far behind, and the standby again afterwards', async () => {
  await standby.query('select pg_wal_replay_pause()');
  const before = await countReads();
  const { customer } = await enrol(store);
  expect(await exportCustomers()).toContain(`"id":${customer.id},`);
  const during = await countReads();
  expect(during.replica).toBe(before.replica);
  expect(during.primary).toBeGreaterThan(before.primary);
  // The next report does not wait again, unless a busy machine is slower than the standby is avoided for.
  const findLastStatement = async () => {
    const { rows } = await standby.query<{ at: string }>(
      `select max(state_change)::text as at from pg_stat_activity
       where application_name like 'inkpad reports %'`,
    );
    return rows[0]?.at;
  };
  await eventually(
    async () => {
      const last = await findLastStatement();
      expect(await readStatistics()).toBe(200);
      return (await findLastStatement()) === last;
    },
    (isSpared) => isSpared,
  );
  await standby.query('select pg_wal_replay_resume()');
  await eventually(
    async () => {
      await readStatistics();
      return countReads();
    },
    ({ replica }) => replica > during.replica,
  );
});

it('reads the primary when the standby is gone', async () => {
  await standby.stop();
  expect(await readStatistics()).toBe(200);
  const { customer } = await enrol(store);
  expect(await exportCustomers()).toContain(`"id":${customer.id},`);
  expect((await countReads()).primary).toBeGreaterThan(0);
});
