import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/** Longer than PostgreSQL waits for a lock here. */
const SLOW = 300_000;
const TABLES = ['customer_cards', 'webhook_subscriptions'];

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
});
afterAll(() => service.stop());

it(
  'requests that wait too long for a lock get 503 with Retry-After, and change nothing',
  async () => {
    const { path } = await enrol(store);
    const hooks = `${store.store}/webhook_subscriptions`;
    const { uuid } = (await store.get<CustomerCardDetailJson>(path)).body;
    const holder = new pg.Client({ connectionString: service.database.url });
    await holder.connect();
    try {
      await holder.query('begin');
      for (const table of TABLES) await holder.query(`lock table ${table}`);
      const hook = { events: ['*'], target_url: 'https://example.com/' };
      const page = fetch(`${service.baseUrl}/passes/${uuid}`, { headers: { accept: 'text/html' } });
      const responses = await Promise.all([
        store.get(path),
        store.stamp(path),
        store.post(hooks, hook),
      ]);
      for (const { status, body, headers } of responses) {
        expect({ status, body }).toMatchObject({ status: 503, body: { code: 'unavailable' } });
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      }
      expect((await page).status).toBe(503);
    } finally {
      await holder.query('rollback');
      await holder.end();
    }
    expect((await store.get(path)).body).toMatchObject({ stamps_count: 0 });
    expect((await store.get(hooks)).body).toEqual([]);
  },
  SLOW,
);
