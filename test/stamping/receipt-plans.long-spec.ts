import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { RecordedStatements } from '../support/database/recorded-statements.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

const ROWS = 100_000;
const RECEIPT = 'receipt-plans';
let service: LocalService;
let store: Client;
let statements: RecordedStatements;

beforeAll(async () => {
  service = await startService();
  statements = new RecordedStatements(service.app.get(Pool));
  store = await service.newStore();
  const { path, customer, rewards } = await enrol(store, { rewards: [3] });
  await store.post(`${path}/stamp`, { stamps: 3, external_ref: RECEIPT });
  await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id, external_ref: RECEIPT });
  const values = [ROWS, store.accountId];
  await service.database.query(
    `insert into es.claims (account_id, kind, value, stream_id, revision)
     select $2, 'external_ref', decode(md5(n::text), 'hex'), 'customer_card-' || 1000000 + n, 1
     from generate_series(1, $1) n`,
    values,
  );
  await service.database.query(
    `insert into webhook_events (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
     select webhook_next_id(), 'evt_plan' || n, $2, 1000000 + n, 'stamp.earned', 'customer_card-' || 1000000 + n, 1, now()
     from generate_series(1, $1) n`,
    values,
  );
  // As the dispatcher writes them, which does not run here.
  for (const { id, stream, revision, data } of await service.history()) {
    if (data['externalRef'] !== RECEIPT) continue;
    await service.database.query(
      `insert into webhook_events (seq, event_id, account_id, customer_id, type, stream, revision, recorded_at)
       values (webhook_next_id(), $1, $2, $3, $4, $5, $6, now())`,
      [
        toPublicEventId(id),
        store.accountId,
        customer.id,
        'stampsSpent' in data ? 'reward.redeemed' : 'stamp.earned',
        stream,
        revision,
      ],
    );
  }
  await service.database.query(
    `insert into history
     select 1000000 + n, gen_random_uuid(), 'customer_card-' || 1000000 + n, 1, lpad(n::text, 20, '0'), $2,
       'reward.redeemed', now(), now(), now(), 'api', 'token:1', 1000000 + n, 1000000 + n, 1, 1, 1, 1, 1, null
     from generate_series(1, $1) n`,
    values,
  );
  await service.database.query('vacuum analyze es.claims, webhook_events, history');
}, 300_000);
afterAll(() => service.stop());

describe('by receipt number, of a store with 100,000 events', () => {
  it.each([
    ['the feed', 'events', 2],
    ['the history', 'history', 2],
    ['the redemptions', 'redemptions', 1],
  ])('%s uses indexes', async (_name, list, count) => {
    for (const [externalRef, expectedCount] of [
      [RECEIPT, count],
      ['of nothing', 0],
    ] as const) {
      statements.clear();
      const query = new URLSearchParams({ external_ref: externalRef });
      const { body } = await store.get<unknown[]>(`${store.store}/${list}?${query}`);
      expect(body).toHaveLength(expectedCount);
      const claims = await statements.explain(service.database, /from es\.claims/);
      expect(claims).toHaveLength(1);
      const events = await statements.explain(service.database, /event_id = any/);
      expect(events).toHaveLength(expectedCount > 0 || list === 'events' ? 1 : 0);
      for (const plan of [...claims, ...events]) {
        // Days without events are scanned, and have no rows to remove.
        expect(plan).not.toMatch(/Seq Scan on (claims|history)|Removed by Filter: \d{2,}/);
      }
    }
  });
});
