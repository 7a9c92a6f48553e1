import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { RecordedStatements } from '../support/database/recorded-statements.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const ROWS = 100_000;
const NO_FILTER = {
  search: null,
  reference: null,
  email: null,
  phone: null,
  code: null,
  updatedSince: null,
  birthdayMonth: null,
  inactiveSince: null,
  cardId: null,
  minStamps: null,
};
let service: LocalService;
let store: Client;
let code: string;
let cardId: number;
let statements: RecordedStatements;

beforeAll(async () => {
  service = await startService();
  statements = new RecordedStatements(service.app.get(Pool));
  store = await service.newStore();
  const { card, customer, customerCard } = await enrol(store, { email: 'one@example.com' });
  cardId = card.id;
  await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
    customer: { phone: '+4915123450000' },
  });
  code = customerCard.code;
  await service.database.query(
    `insert into customers (id, account_id, revision, hash, projection_version, state)
     select 1000000 + n, $2, 0, '', 1, c.state || jsonb_build_object(
       'id', 1000000 + n, 'updatedAt', to_char(timestamp '2026-01-01' + n * interval '1 minute',
         'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       'createdAt', '2026-01-01T00:00:00.000Z', 'birthday', format('1990-%s-15', to_char(1 + n % 12, 'FM00')),
       'searchText', 'anna' || n || E'\\nanna' || n || '@example.com', 'phoneDigits', null)
     from generate_series(1, $1) n, customers c where c.id = $3`,
    [ROWS, store.accountId, customer.id],
  );
  // Everybody has one card with up to 20 stamps, and each card last changed at another minute.
  await service.database.query(
    `insert into customer_cards
     select 1000000 + n, $2, 0, '', 4, s.state, d.*
     from generate_series(1, $1) n, customer_cards k,
       lateral (select k.state || jsonb_build_object(
         'id', 1000000 + n, 'customerId', 1000000 + n, 'stampsCount', n % 21,
         'code', 'PLAN' || n, 'uuid', gen_random_uuid(),
         'updatedAt', to_char(timestamp '2026-01-01' + n * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
       ) as state) s, es.derive_customer_cards(s.state) d
     where k.id = $3`,
    [ROWS, store.accountId, customerCard.id],
  );
  await service.database.query('vacuum analyze customers, customer_cards');
}, 300_000);
afterAll(() => service.stop());

/** Explains the statements that a request for the list runs. */
async function explainList(
  query: Record<string, string>,
): Promise<{ rowCount: number; plans: string }> {
  statements.clear();
  const path = `${store.store}/customers?${new URLSearchParams(query)}`;
  const { body } = await store.get<CustomerListJson>(path);
  const plans = await statements.explain(service.database, /from customers [cp] where/);
  expect(plans).toHaveLength(2);
  return { rowCount: body.pagination.count, plans: plans.join('\n') };
}

describe('the list of 100,000 customers', () => {
  it.each([
    ['email', () => ({ email: 'ONE@example.com' }), 1],
    ['phone', () => ({ phone: '+49 151 23450000' }), 1],
    ['code', () => ({ code: code.toLowerCase() }), 1],
    ['a late updated_since', () => ({ updated_since: '2026-03-11T10:30:00Z' }), 12],
    ['birthday_month', () => ({ birthday_month: '5' }), 8_334],
    ['all filters', () => ({ email: 'one@example.com', code, updated_since: '2026-01-01' }), 1],
  ])('filtered by %s uses an index', async (_name, query, count) => {
    const { rowCount, plans } = await explainList(query());
    expect([rowCount, plans]).toEqual([count, expect.not.stringMatching(/Seq Scan on customers/)]);
    const filteredCounts = [...plans.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) =>
      Number(rows),
    );
    expect(Math.max(0, ...filteredCounts)).toBeLessThan(10);
  });

  it.each([
    ['an early updated_since', () => ({ updated_since: '2026-01-01T00:00:00Z' }), ROWS + 1],
    ['card_id', () => ({ card_id: String(cardId) }), ROWS + 1],
    ['min_stamps', () => ({ min_stamps: '20' }), 4_761],
    ['min_stamps of a card', () => ({ min_stamps: '20', card_id: String(cardId) }), 4_761],
    ['inactive_since', () => ({ inactive_since: '2026-01-02T00:00:00Z' }), 1_439],
    [
      'inactive_since and others',
      () => ({
        inactive_since: '2026-03-01',
        birthday_month: '5',
        min_stamps: '19',
        card_id: String(cardId),
      }),
      1_011,
    ],
  ])('filtered by %s scans each table at most once', async (_name, query, count) => {
    for (const cursor of [{}, { cursor: '' }]) {
      const { rowCount, plans } = await explainList({ ...query(), ...cursor });
      expect(rowCount).toBe(count);
      // Up to three: the workers of one parallel scan.
      expect(plans).not.toMatch(/(Seq Scan|Aggregate|SubPlan)[^\n]*loops=([4-9]|\d{2,})/);
    }
  });

  it.each(['name', 'active', 'stamps'] as const)(
    'sorted by %s scans each table at most once',
    async (sort) => {
      const customers = service.app.get(CustomersService, { strict: false });
      statements.clear();
      const list = await customers.list(store.accountId, NO_FILTER, { page: 2, items: 25, sort });
      expect(list.customers).toHaveLength(25);
      await customers.list(store.accountId, NO_FILTER, { page: ROWS / 25, items: 25, sort });
      const plans = await statements.explain(service.database, /from customers c/);
      expect(plans).toHaveLength(4);
      expect(plans.join('\n')).not.toMatch(
        /(Seq Scan|Aggregate|SubPlan)[^\n]*loops=([4-9]|\d{2,})/,
      );
    },
  );
});
