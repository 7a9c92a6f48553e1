import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createRedemptionQuery, type RedemptionFilter } from '#history/redemption-query.js';
import { createHistoryQuery, NO_FILTER, type HistoryFilter } from '#history/history-query.js';
import { ENTRY_COLUMNS } from '#history/history-table.service.js';
import { EARLIER_VISITS, LATER_VISITS } from '#statistics/customer-visits.service.js';
import { STATISTICS_ENTRIES } from '#statistics/statistics-table.service.js';
import { createTestDatabase, type TestDatabase } from './support/database/database.js';

const ROWS = 100_000;
/** A store whose last entry is old: a scan back through the entries of all stores would take ever longer. */
const CLOSED = 1;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  // Each record belongs to one store; those of the closed one have numbers from a million.
  await database.query(
    `insert into history
     select n, gen_random_uuid(), 'customer_card-' || own + n % 5000, n / 5000, lpad(n::text, 20, '0'),
       case when own > 0 then ${CLOSED} else 2 + n % 5 end,
       (array['stamp.earned', 'reward.redeemed', 'customer.created'])[1 + n % 3],
       at, at, at, case when n % 4 = 0 then 'pos' else 'api' end, 'token:' || n % 12,
       own + n % 5000, own + n % 5000, own + n % 15, own + n % 10, own + n % 35, 1, n / 5000, null
     from generate_series(0, $1 - 1) n,
       lateral (select timestamptz '2026-01-01' + n * interval '1 minute',
                  case when n < $1 / 10 then 1000000 else 0 end) t (at, own)`,
    [ROWS],
  );
  await database.query('analyze history');
});
afterAll(() => database.close());

async function explainList(accountId: number, filter: Partial<HistoryFilter>): Promise<string> {
  const slice = { accountId, low: 0, high: ROWS, limit: 101 };
  return explain(createHistoryQuery(ENTRY_COLUMNS, slice, { ...NO_FILTER, ...filter }));
}

async function explain({ text, values }: ReturnType<typeof createHistoryQuery>): Promise<string> {
  const { rows } = await database.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, costs off, timing off, summary off, buffers off) ${text}`,
    values,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

/** @param first the lowest of the store's ids */
const filters = (first: number): [string, Partial<HistoryFilter>, string][] => [
  ['nothing', {}, 'history_account'],
  ['customer card', { customerCardId: first + 70 }, 'history_customer_card'],
  ['customer', { customerId: first + 70 }, 'history_customer'],
  ['card', { cardId: first }, 'history_card'],
  ['location', { locationId: first + 5 }, 'history_location'],
  ['type', { name: 'reward.redeemed' }, 'history_name'],
  ['channel', { channel: 'pos' }, 'history_channel'],
  ['actor', { actor: 'token:5' }, 'history_actor'],
  ['a type without entries', { name: 'card.painted' }, 'history_name'],
  ['an actor without entries', { actor: 'user:1' }, 'history_actor'],
];

describe.each([
  [CLOSED, 1_000_000],
  [3, 1],
])('in a history of 100,000 entries, the list of store %i', (accountId, first) => {
  it.each(filters(first))(
    'filtered by %s is read in the order of its index, without sorting or skipping rows',
    async (_name, filter, index) => {
      const plan = await explainList(accountId, filter);
      expect(plan).toMatch(new RegExp(`using ${index} on history`));
      expect(plan).not.toMatch(/Sort|Seq Scan|Bitmap|Removed/);
    },
  );
});

/** The few rows of a reward or location are cheaper to sort than to read in order. */
const FEW = 1_000;

function countSortedRows(plan: string): number {
  return Number(/Bitmap Heap Scan on history \(actual rows=(\d+)/.exec(plan)?.[1] ?? 0);
}

const ANY: RedemptionFilter = {
  cardId: null,
  customerId: null,
  rewardId: null,
  locationId: null,
  from: null,
  to: null,
};

const redemptionFilters = (first: number): [string, Partial<RedemptionFilter>, string][] => [
  ['nothing', {}, 'history_redeemed'],
  ['customer', { customerId: first + 70 }, 'history_redeemed_customer'],
  ['card', { cardId: first }, 'history_redeemed_card'],
  ['reward', { rewardId: first + 5 }, 'history_redeemed_reward'],
  ['location', { locationId: first + 5 }, 'history_redeemed_location'],
  ['time', { from: new Date('2026-01-02'), to: new Date('2026-03-01') }, 'history_redeemed'],
];

describe.each([
  [CLOSED, 1_000_000],
  [3, 1],
])('in a history of 100,000 entries, the redemptions of store %i', (accountId, first) => {
  it.each(redemptionFilters(first))(
    'filtered by %s are read by an index, with at most a thousand rows to sort',
    async (_name, filter, index) => {
      const after = [Date.parse('2026-02-15'), 50_000, 50_000];
      for (const range of [
        { after: null, limit: 101 },
        { after, limit: 101 },
      ]) {
        const slice = { accountId, end: ROWS };
        const query = createRedemptionQuery(ENTRY_COLUMNS, slice, { ...ANY, ...filter }, range);
        const plan = await explain(query);
        expect(plan).toMatch(new RegExp(` (using|on) ${index} `));
        expect(plan).not.toMatch(/Seq Scan|Removed/);
        expect(countSortedRows(plan)).toBeLessThan(FEW);
      }
    },
  );
});

describe('in a history of 100,000 entries, the statistics', () => {
  it('read the next entries, and what each undoes, one by one', async () => {
    const plan = await explain({ text: STATISTICS_ENTRIES.text, values: [ROWS / 2] });
    expect(plan).toMatch(/using history_event on history/);
    expect(plan).not.toMatch(/Seq Scan on history|Bitmap|Hash|Merge/);
  });

  it.each([
    ['before', EARLIER_VISITS],
    ['after', LATER_VISITS],
  ])('read the visits of customers %s a time in the order of their index', async (_name, query) => {
    const at = new Date('2026-02-15');
    const values = [[71, 72, 73], [at, at, at], [0, 0, 0], ROWS, 2];
    const plan = await explain({ text: query.text, values });
    expect(plan).toMatch(/using history_visits on history/);
    expect(plan).toMatch(/using history_reverses on history/);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Removed|Incremental/);
  });
});
