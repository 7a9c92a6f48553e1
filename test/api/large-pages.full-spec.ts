import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import {
  Client,
  startService,
  type ApiResponse,
  type Service,
} from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const MIB = 1024 * 1024;
const CUSTOMERS = 5;
const UPDATES = 52;

let service: Service;
let dispatcher: Program;
let store: Client;

beforeAll(async () => {
  service = await startService();
  dispatcher = await startDispatcher(service);
  store = await service.newStore();
  await Promise.all(Array.from({ length: CUSTOMERS }, () => changeOften()));
  await eventually(
    async () => (await store.get<EnvelopeJson[]>(`${store.store}/events?limit=1`)).body.length,
    (count) => count === 1,
  );
});
afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
});

/** As large as events get: a customer with all the metadata and references that there may be. */
async function changeOften(): Promise<void> {
  const { customer } = await enrol(store);
  const path = `${store.store}/customers/${customer.id}`;
  const references = ['till', 'shop'].map((source) => ({
    source,
    external_id: String(customer.id),
    metadata: { text: 'x'.repeat(15_000) },
  }));
  await update(path, { external_references: references });
  for (let i = 0; i < UPDATES; i++) {
    await update(path, { metadata: { text: String(i % 10).repeat(16_000) } });
  }
}

async function update(path: string, customer: object): Promise<void> {
  const { status } = await store.send<CustomerJson>('PATCH', path, { customer });
  expect(status).toBe(200);
}

describe('large pages of the feed', () => {
  it('DELIV-53 A page of the feed ends near 4 MiB, whatever its `limit`, and its `Link` goes on', async () => {
    const PORT = String(await findFreePort());
    const METRICS_PORT = String(await findFreePort());
    const api = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(service.database.url, {
        ...service.environment,
        PORT,
        METRICS_PORT,
        LOG_LEVEL: 'info',
        // Less than what operators give it: shows what is needed, and not what waits to be collected.
        NODE_OPTIONS: '--max-old-space-size=112 --max-semi-space-size=4',
      }),
    );
    try {
      await eventually(api.output, (text) => text.includes('[api] listening'));
      const caller = new Client(`http://127.0.0.1:${PORT}`, store.accountId, store.token);
      const idleBytes = await measureMemory(METRICS_PORT);
      const peak = { bytes: 0 };
      const done = new AbortController();
      const watching = watch(METRICS_PORT, peak, done.signal);
      const lists = await Promise.all(Array.from({ length: 4 }, () => wholeFeed(caller)));
      done.abort();
      await watching;
      const [first] = lists;
      expect(first?.ids.length).toBeGreaterThan(CUSTOMERS * UPDATES);
      for (const { ids, pages } of lists) {
        expect(ids).toEqual(first?.ids);
        expect(pages).toBeGreaterThan(3);
      }
      expect(peak.bytes - idleBytes).toBeLessThan(90 * MIB);
    } catch (error) {
      // Whether the process has died is told by its last words.
      console.error(api.output().slice(-4_000));
      throw error;
    } finally {
      await api.kill('SIGTERM');
    }
  });
});

describe('the list of stores', () => {
  it('LIST-15 5,000 stores are one array', async () => {
    const owner = await service.newStore();
    const long = 'x'.repeat(200);
    const account = { name: long, store_name: long, website: `https://cards.example/${long}` };
    expect((await owner.send('PATCH', owner.store, { account })).status).toBe(200);
    await service.database.query(
      `insert into accounts (id, account_id, revision, hash, projection_version, state)
       select 1e6 + n, 1e6 + n, revision, hash, projection_version, jsonb_set(state, '{id}', to_jsonb(1e6::bigint + n))
       from accounts, generate_series(1, 4999) n where id = $1`,
      [owner.accountId],
    );
    await service.database.query(
      `insert into memberships (user_id, account_id, created_at, role)
       select user_id, 1e6 + n, created_at, role from memberships, generate_series(1, 4999) n
       where account_id = $1`,
      [owner.accountId],
    );
    const { status, body, text, headers } = await owner.get<{ id: number }[]>('/api/v1/accounts');
    expect([status, body.length, headers.get('link')]).toEqual([200, 5_000, null]);
    expect(new Set(body.map(({ id }) => id)).size).toBe(5_000);
    expect(text.length / MIB).toBeGreaterThan(4);
  });
});

async function wholeFeed(caller: Client): Promise<{ ids: string[]; pages: number }> {
  const ids: string[] = [];
  let path: string | undefined = `${caller.store}/events?limit=250`;
  let pages = 0;
  for (; path !== undefined; pages++) {
    const page: string = path;
    // A request that waits for memory for 20 s gets 503.
    const { status, body, text, headers }: ApiResponse<EnvelopeJson[]> = await eventually(
      () => caller.get<EnvelopeJson[]>(page),
      (response) => response.status !== 503,
    );
    expect(status).toBe(200);
    expect(text.length).toBeLessThan(4.5 * MIB);
    ids.push(...body.map(({ id }) => id));
    path = /<https:\/\/cards\.example([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  }
  return { ids, pages };
}

async function watch(port: string, peak: { bytes: number }, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) peak.bytes = Math.max(peak.bytes, await measureMemory(port));
}

/** Returns the size of the heap and of what hangs on it. The program's own code is beside these. */
async function measureMemory(port: string): Promise<number> {
  const metrics = samples(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  const heap = metrics.value('nodejs_heap_size_total_bytes');
  const external = metrics.value('nodejs_external_memory_bytes');
  // NaN is less than nothing, so a metric that is missing fails the test.
  return (heap ?? NaN) + (external ?? NaN);
}
