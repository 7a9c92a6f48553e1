import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readSlice, TIMES, type DatabaseChoice } from '#loyalty/history/history.service.js';
import { readRedemptions } from '#loyalty/history/redemptions.service.js';
import {
  createRedemptionQuery,
  NO_REDEMPTION_FILTER,
  type RedemptionFilter,
} from '#loyalty/history/redemption-query.js';
import {
  createHistoryQuery,
  listIndexKeys,
  NO_FILTER,
  WINDOWS,
  type HistoryFilter,
} from '#loyalty/history/history-query.js';
import { ENTRY_COLUMNS } from '#loyalty/history/history-table.service.js';
import { EARLIER_VISITS, LATER_VISITS } from '#loyalty/statistics/customer-visits.service.js';
import { STATISTICS_ENTRIES } from '#loyalty/statistics/statistics-table.service.js';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';

const ROWS = 100_000;
/** A store whose last entry is old: a scan back through the entries of all stores would take ever longer. */
const CLOSED = 1;
let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  // Each record belongs to one store; those of the closed one have numbers from a million.
  await database.query(
    `insert into history
     select n, gen_random_uuid(),
       case when n % 3 = 2 then 'customer-' else 'customer_card-' end || own + n % 5000,
       n / 5000, lpad(n::text, 20, '0'),
       case when own > 0 then ${CLOSED} else 2 + n % 5 end,
       (array['stamp.earned', 'reward.redeemed', 'customer.card_links_requested'])[1 + n % 3],
       at, at, at, case when n % 4 = 0 then 'pos' else 'api' end, 'token:' || n % 12,
       own + n % 5000, own + n % 5000, own + n % 15, own + n % 10, own + n % 35, 1, n / 5000, null
     from generate_series(0, $1 - 1) n,
       lateral (select timestamptz '2026-01-01' + n * interval '1 minute',
                  case when n < $1 / 10 then 1000000 else 0 end) t (at, own)`,
    [ROWS],
  );
  await database.query('analyze history');
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

type Queries = ReturnType<typeof createHistoryQuery>;

/** Explains the statements that read a list, one for each index key, and those that find where their windows end. */
async function explainList(accountId: number, partial: Partial<HistoryFilter>): Promise<string[]> {
  const slice = { accountId, low: 0, high: ROWS, limit: 101 };
  const filter = { ...NO_FILTER, ...partial };
  const keys = listIndexKeys(accountId, filter);
  return explainAll(...keys.map((key) => createHistoryQuery(ENTRY_COLUMNS, slice, filter, key)));
}

async function explainAll(...queries: Queries[]): Promise<string[]> {
  const plans: string[] = [];
  for (const query of queries.flatMap(({ rows, end }) => [rows, end]))
    if (query) plans.push(await explain(query));
  return plans;
}

async function explain({ text, values }: Queries['rows']): Promise<string> {
  const { rows } = await database.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, costs off, timing off, summary off, buffers off) ${text}`,
    values,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

/** @param first the lowest of the store's ids */
const filters = (first: number): [string, Partial<HistoryFilter>, string][] => [
  ['nothing', {}, 'history_account'],
  ['customer', { customerId: first + 70 }, 'history_customer'],
  ['card', { cardId: first }, 'history_account'],
  ['location', { locationId: first + 5 }, 'history_account'],
  ['type', { name: 'reward.redeemed' }, 'history_name'],
  ['channel', { channel: 'pos' }, 'history_account'],
  ['actor', { actor: 'token:5' }, 'history_actor'],
  ['a type without entries', { name: 'card.painted' }, 'history_name'],
  ['an actor without entries', { actor: 'user:1' }, 'history_actor'],
  ['a channel without entries', { channel: 'poster' }, 'history_account'],
  ['a card of another store', { cardId: 2_000_000 }, 'history_account'],
  ['type and channel', { name: 'stamp.earned', channel: 'poster' }, 'history_name'],
  ['actor and type', { actor: 'token:5', name: 'card.painted' }, 'history_actor'],
];

/** Counts the rows that the plan reads from the table, matching or not. */
function countRead(plan: string): number {
  const [, rows = ''] = /on history.* \(actual rows=([\d.]+)/.exec(plan) ?? [];
  const [, removed = '0'] = /on history[^]*Rows Removed by Filter: (\d+)/.exec(plan) ?? [];
  return Number(rows) + Number(removed);
}

describe.each([
  [CLOSED, 1_000_000],
  [3, 1],
])('in a history of 100,000 entries, the list of store %i', (accountId, first) => {
  it.each(filters(first))(
    'filtered by %s is read in the order of its index, without sorting, at most a window at a time',
    async (_name, filter, index) => {
      for (const plan of await explainList(accountId, filter)) {
        expect(plan).toMatch(new RegExp(`using ${index} on history`));
        expect(plan).not.toMatch(/Sort|Seq Scan|Bitmap/);
        expect(countRead(plan)).toBeLessThanOrEqual(WINDOWS.first);
      }
    },
  );
});

describe('in a history of 100,000 entries, the list of a customer', () => {
  it('card is read by its stream and the requests of links to it, however many requests the store has', async () => {
    const plans = await explainList(3, { customerCardId: 71 });
    expect(plans.map((plan) => /history_[a-z_]+/.exec(plan)?.[0])).toEqual([
      'history_stream',
      'history_card_links',
    ]);
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan|Removed/);
    const read = plans.map(countRead).reduce((sum, rows) => sum + rows, 0);
    const { rows } = await database.query<{ count: number }>(
      'select count(*)::int from history where customer_card_id = 71',
    );
    expect(read).toBe(rows[0]?.count);
  });

  it('and that of a customer with other filters read no entries but theirs', async () => {
    for (const filter of [{ customerId: 71 }, { customerCardId: 71 }]) {
      for (const plan of await explainList(3, { ...filter, channel: 'poster' })) {
        expect(plan).toMatch(/history_(customer|stream|card_links)/);
        expect(plan).not.toMatch(/Seq Scan/);
        expect(countRead(plan)).toBeLessThanOrEqual(ROWS / 5000);
      }
    }
  });
});

describe('in a history of 100,000 entries, windows', () => {
  const readFrom: DatabaseChoice = (work) => work(pool);

  it.each<Partial<HistoryFilter>>([
    { locationId: 6, channel: 'pos' },
    { cardId: 1, name: 'reward.redeemed' },
    { actor: 'token:5', channel: 'poster' },
    { channel: 'pos' },
  ])('find every entry of %j once, newest first', async (partial) => {
    const filter = { ...NO_FILTER, ...partial };
    const [key = new Map()] = listIndexKeys(3, filter);
    const slice = { accountId: 3, low: 20_000, high: 90_000, limit: ROWS };
    const rows = await readSlice(readFrom, slice, filter, key);
    const expected = await database.query<{ seq: string }>(
      `select seq from history where account_id = 3 and seq between 20000 and 90000
         and location_id = coalesce($1, location_id) and card_id = coalesce($2, card_id)
         and name = coalesce($3, name) and channel = coalesce($4, channel) and actor = coalesce($5, actor)
       order by seq desc`,
      [filter.locationId, filter.cardId, filter.name, filter.channel, filter.actor],
    );
    expect(rows.map(({ seq }) => Number(seq))).toEqual(expected.rows.map(({ seq }) => Number(seq)));
    expect(await readSlice(readFrom, { ...slice, limit: 7 }, filter, key)).toEqual(
      rows.slice(0, 7),
    );
  });

  it.each<Partial<RedemptionFilter>>([
    { locationId: 6 },
    { customerId: 71 },
    { cardId: 1, rewardId: 6 },
    {},
  ])('find every redemption of %j once, newest first', async (partial) => {
    const filter = { ...NO_REDEMPTION_FILTER, ...partial };
    const slice = { accountId: 3, end: 90_000, limit: ROWS };
    const after = { at: new Date('2026-02-25'), seq: 79_200 };
    const rows = await readRedemptions(readFrom, slice, filter, after);
    const expected = await database.query<{ seq: string }>(
      `select seq from history where account_id = 3 and name = 'reward.redeemed' and seq < 79200
           and location_id = coalesce($1, location_id) and card_id = coalesce($2, card_id)
           and customer_id = coalesce($3, customer_id) and reward_id = coalesce($4, reward_id)
         order by seq desc`,
      [filter.locationId, filter.cardId, filter.customerId, filter.rewardId],
    );
    expect(rows.map(({ seq }) => Number(seq))).toEqual(expected.rows.map(({ seq }) => Number(seq)));
    expect(rows).not.toHaveLength(0);
  });
});

describe('find_history_seq', () => {
  it('finds the first entry at or after a position or a time, and the number after the last one', async () => {
    const find = async (position: string | null, time: string | null) => {
      const { rows } = await database.query<{ seq: number }>(
        'select find_history_seq($1, $2)::int as seq',
        [position, time],
      );
      return rows[0]?.seq;
    };
    const pad = (n: number) => String(n).padStart(20, '0');
    expect(await find(pad(0), null)).toBe(0);
    expect(await find(pad(70_000), null)).toBe(70_000);
    expect(await find(`${pad(70_000)}:`, null)).toBe(70_001);
    expect(await find(pad(ROWS), null)).toBe(ROWS);
    expect(await find(null, '2026-01-01T10:00:00Z')).toBe(600);
    expect(await find(null, '2026-01-01T10:00:01Z')).toBe(601);
    expect(await find(null, '2030-01-01')).toBe(ROWS);
  });
});

describe('in a history of 100,000 entries, a past day', () => {
  const day = [new Date('2026-02-01'), new Date('2026-02-02')];

  it('is where its entries are, although another store has imported what is years older', async () => {
    await database.query(
      `insert into history select (jsonb_populate_record(h, jsonb_build_object('seq', $1::bigint,
           'event_id', gen_random_uuid(), 'account_id', 7, 'recorded_at', '2020-01-01Z'))).*
       from history h where seq = $1::bigint - 1`,
      [ROWS],
    );
    const read = async (accountId: number) =>
      (await database.query(TIMES.text, [...day, accountId])).rows[0];
    const low = 31 * 24 * 60;
    expect(await read(3)).toEqual({ low, high: low + 24 * 60 });
    expect(await read(7)).toEqual({ low, high: ROWS });
    const plan = await explain({ text: TIMES.text, values: [...day, 7] });
    expect(plan).toMatch(/using history_late on history/);
    expect(plan).not.toMatch(/Sort|Seq Scan|Bitmap/);
    await database.query('delete from history where seq = $1', [ROWS]);
  });
});

/** The few rows of a reward or location are cheaper to sort than to read in order. */
const FEW = 1_000;

function countSortedRows(plan: string): number {
  return Number(/Bitmap Heap Scan on history \(actual rows=(\d+)/.exec(plan)?.[1] ?? 0);
}

const redemptionFilters = (first: number): [string, Partial<RedemptionFilter>, string][] => [
  ['nothing', {}, 'history_redeemed'],
  ['customer', { customerId: first + 70 }, 'history_visits'],
  ['card', { cardId: first }, 'history_redeemed'],
  ['reward', { rewardId: first + 5 }, 'history_redeemed'],
  ['location', { locationId: first + 5 }, 'history_redeemed'],
  ['time', { from: new Date('2026-01-02'), to: new Date('2026-03-01') }, 'history_redeemed'],
];

describe.each([
  [CLOSED, 1_000_000],
  [3, 1],
])('in a history of 100,000 entries, the redemptions of store %i', (accountId, first) => {
  it.each(redemptionFilters(first))(
    'filtered by %s are read by an index, with at most a thousand rows to sort',
    async (_name, filter, index) => {
      for (const after of [null, { at: new Date('2026-02-15'), seq: 50_000 }]) {
        const slice = { accountId, end: ROWS, limit: 101 };
        const queries = createRedemptionQuery(
          ENTRY_COLUMNS,
          slice,
          { ...NO_REDEMPTION_FILTER, ...filter },
          after,
        );
        for (const plan of await explainAll(queries)) {
          expect(plan).toMatch(new RegExp(` (using|on) ${index} `));
          expect(plan).not.toMatch(/Seq Scan/);
          expect(countSortedRows(plan)).toBeLessThan(FEW);
        }
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
