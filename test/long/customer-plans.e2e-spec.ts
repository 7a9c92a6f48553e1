import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import type { CustomerListJson } from '#customers/customer-list.dto.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const ROWS = 100_000;
let service: LocalService;
let store: Client;
let code: string;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const { customer, customerCard } = await enrol(store, { email: 'one@example.com' });
  await store.send('PATCH', `${store.store}/customers/${customer.id}`, {
    customer: { phone: '+4915123450000' },
  });
  code = customerCard.code;
  await service.database.query(
    `insert into customers (id, account_id, revision, hash, projection_version, state)
     select 1000000 + n, $2, 0, '', 5, c.state || jsonb_build_object(
       'id', 1000000 + n, 'updatedAt', to_char(timestamp '2026-01-01' + n * interval '1 minute',
         'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       'searchText', 'anna' || n || E'\\nanna' || n || '@example.com', 'phoneDigits', null)
     from generate_series(1, $1) n, customers c where c.id = $3`,
    [ROWS, store.accountId, customer.id],
  );
  await service.database.query('vacuum analyze customers');
}, 300_000);
afterAll(() => service.stop());

/** Explains the statements that a request for the list runs. */
async function explainList(
  query: Record<string, string>,
): Promise<{ rowCount: number; plans: string }> {
  const pool = service.app.get(Pool);
  const statements: { text: string; values?: unknown[] }[] = [];
  const real = pool.query.bind(pool);
  pool.query = ((statement: { text: string }, ...rest: unknown[]) => {
    statements.push(statement);
    return (real as (...parameters: unknown[]) => unknown)(statement, ...rest);
  }) as typeof pool.query;
  try {
    const path = `${store.store}/customers?${new URLSearchParams(query)}`;
    const { body } = await store.get<CustomerListJson>(path);
    const plans: string[] = [];
    for (const { text, values } of statements.filter((one) =>
      /from customers [cp] where/.test(one.text),
    )) {
      const { rows } = await real<{ 'QUERY PLAN': string }>(
        `explain (analyze, costs off, timing off, summary off, buffers off) ${text}`,
        values,
      );
      plans.push(...rows.map((row) => row['QUERY PLAN']));
    }
    return { rowCount: body.pagination.count, plans: plans.join('\n') };
  } finally {
    pool.query = real;
  }
}

describe('the list of 100,000 customers', () => {
  it.each([
    ['email', () => ({ email: 'ONE@example.com' }), 1],
    ['phone', () => ({ phone: '+49 151 23450000' }), 1],
    ['code', () => ({ code: code.toLowerCase() }), 1],
    ['a late updated_since', () => ({ updated_since: '2026-03-11T10:30:00Z' }), 12],
    ['an early updated_since', () => ({ updated_since: '2026-01-01T00:00:00Z' }), ROWS + 1],
    ['all filters', () => ({ email: 'one@example.com', code, updated_since: '2026-01-01' }), 1],
  ])('filtered by %s uses an index', async (_name, query, count) => {
    const { rowCount, plans } = await explainList(query());
    expect([rowCount, plans]).toEqual([count, expect.not.stringMatching(/Seq Scan on customers/)]);
    const filteredCounts = [...plans.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) =>
      Number(rows),
    );
    expect(Math.max(0, ...filteredCounts)).toBeLessThan(10);
  });
});
