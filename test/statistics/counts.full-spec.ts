import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { CustomerVisits } from '#loyalty/statistics/customer-visits.service.js';
import { StatisticsTable } from '#loyalty/statistics/statistics-table.service.js';
import { StoreRecounts } from '#loyalty/statistics/store-recounts.service.js';
import { StatisticsVerification } from '#loyalty/statistics/statistics-verification.service.js';
import { StatisticsService } from '#loyalty/statistics/statistics.service.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Counts histories of random visits, and compares with a model that looks at every one of them. */

type Entry = {
  seq: number;
  eventId: string;
  customerId: number;
  cardId: number;
  locationId: number | null;
  /** Null: a program did it. */
  userId: number | null;
  name: string;
  source: string | null;
  stamps: number;
  at: number;
  reverses: string | null;
};

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
/** Around both changes of the clock in Europe. */
const BEGIN = Date.parse('2025-03-01T00:00:00Z');
const DAYS = 300;
const NOW = new Date(BEGIN + DAYS * DAY_MS);
const INTERVALS = ['day', 'week', 'month'] as const;
const SCOPES = [null, 2].flatMap((cardId) =>
  [null, 1].flatMap((locationId) => [null, 2].map((userId) => ({ cardId, locationId, userId }))),
);

let service: LocalService;
let pool: Pool;
let table: StatisticsTable;
let seq: number;

beforeAll(async () => {
  service = await startService();
  pool = service.app.get(Pool);
  table = new StatisticsTable(pool);
  seq = 1_000_000;
});
afterAll(() => service.stop());

/** Repeatable, so that a failure can be looked at again. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class RandomHistory {
  readonly entries: Entry[] = [];
  private readonly random: (below: number) => number;

  constructor(
    readonly store: Client,
    seed: number,
    private readonly customerIds: number[],
  ) {
    this.random = createRandom(seed);
  }

  /** Adds entries, of which some undo earlier ones, and few are in the order in which they happened. */
  async add(count: number): Promise<void> {
    const added = Array.from({ length: count }, () => {
      const entry = this.next();
      this.entries.push(entry);
      return entry;
    });
    await this.insert(added);
  }

  /** Adds one stamping. */
  async stamp(at: number, customer: number, stamps: number): Promise<void> {
    const entry: Entry = {
      seq: ++seq,
      eventId: randomUUID(),
      customerId: this.customerIds[customer] ?? 0,
      cardId: 1,
      locationId: null,
      userId: null,
      name: 'stamp.earned',
      source: 'api',
      stamps,
      at,
      reverses: null,
    };
    await this.insert([entry]);
  }

  private async insert(added: Entry[]): Promise<void> {
    const columns = (values: (entry: Entry) => unknown) => added.map(values);
    await pool.query(
      `insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at, latest_recorded_at,
         occurred_at, channel, actor, customer_id, customer_card_id, card_id, location_id, stamps, reverses, source)
       select x.seq, x.event_id, 'random-' || x.seq, 0, lpad(x.seq::text, 20, '9'), $1, x.name, $2, $2, x.at, 'api', x.actor,
         x.customer_id, x.customer_id, x.card_id, x.location_id, x.stamps, x.reverses, x.source
       from unnest($3::bigint[], $4::uuid[], $5::text[], $6::timestamptz[], $7::bigint[], $8::bigint[], $9::bigint[],
         $10::bigint[], $11::uuid[], $12::text[], $13::text[])
         as x (seq, event_id, name, at, customer_id, card_id, location_id, stamps, reverses, source, actor)`,
      [
        this.store.accountId,
        NOW,
        columns((entry) => entry.seq),
        columns((entry) => entry.eventId),
        columns((entry) => entry.name),
        columns((entry) => new Date(entry.at)),
        columns((entry) => entry.customerId),
        columns((entry) => entry.cardId),
        columns((entry) => entry.locationId),
        columns((entry) => entry.stamps),
        columns((entry) => entry.reverses),
        columns((entry) => entry.source),
        columns(({ userId }) => (userId === null ? 'token:1' : `user:${userId}`)),
      ],
    );
  }

  private next(): Entry {
    const { random } = this;
    const customerId = this.customerIds[random(this.customerIds.length)] ?? 0;
    const at = BEGIN + random(DAYS * 24 * 60) * 60_000;
    const plain = {
      seq: ++seq,
      eventId: randomUUID(),
      customerId,
      cardId: 1 + random(3),
      locationId: random(2) === 0 ? null : 1 + random(2),
      userId: random(3) === 0 ? null : 1 + random(2),
      at,
      reverses: null,
    };
    const stamps = 1 + random(4);
    const kind = random(10);
    const undone = this.entries[random(Math.max(1, this.entries.length))];
    if (kind === 0 && undone?.reverses === null && !this.isUndone(undone)) {
      const { customerId: of, cardId } = undone;
      const name = undone.stamps > 0 ? 'stamp.removed' : 'stamp.earned';
      return {
        ...plain,
        customerId: of,
        cardId,
        locationId: null,
        name,
        source: 'adjustment',
        stamps: -undone.stamps,
        reverses: undone.eventId,
      };
    }
    if (kind === 1) return { ...plain, name: 'stamp.earned', source: 'welcome_bonus', stamps };
    if (kind === 2) return { ...plain, name: 'stamp.earned', source: 'adjustment', stamps };
    if (kind < 5) return { ...plain, name: 'reward.redeemed', source: null, stamps: -stamps };
    return { ...plain, name: 'stamp.earned', source: kind < 7 ? 'pos' : 'api', stamps };
  }

  isUndone({ eventId }: Entry): boolean {
    return this.entries.some(({ reverses }) => reverses === eventId);
  }

  /** Lists what counts. */
  listVisits(): Entry[] {
    const undone = new Set(this.entries.map(({ reverses }) => reverses));
    return this.entries.filter(
      ({ name, source, reverses, eventId }) =>
        reverses === null &&
        !undone.has(eventId) &&
        (name === 'reward.redeemed' || source === 'pos' || source === 'api'),
    );
  }
}

const clocks = new Map<string, { day: string; hour: number }>();

/** @returns YYYY-MM-DD and the hour, by another formatter than the one under test */
function readClock(timeZone: string, at: number): { day: string; hour: number } {
  const key = `${timeZone} ${at}`;
  const cached = clocks.get(key);
  if (cached) return cached;
  const text = new Date(at).toLocaleString('sv-SE', { timeZone });
  const clock = { day: text.slice(0, 10), hour: Number(text.slice(11, 13)) };
  clocks.set(key, clock);
  return clock;
}

type Scope = { cardId: number | null; locationId: number | null; userId: number | null };

function model(
  history: RandomHistory,
  timeZone: string,
  { start, end }: { start: string; end: string },
  { cardId, locationId, userId }: Scope,
) {
  const firsts = new Map<string, number>();
  for (const { seq: own, customerId, cardId: card, at } of history
    .listVisits()
    .toSorted((a, b) => a.at - b.at || a.seq - b.seq)) {
    const key = `${customerId} ${card} ${readClock(timeZone, at).day}`;
    if (!firsts.has(key)) firsts.set(key, own);
  }
  const visitSeqs = new Set(firsts.values());
  const visits = history
    .listVisits()
    .filter((visit) => cardId === null || visit.cardId === cardId)
    .filter((visit) => locationId === null || visit.locationId === locationId)
    .filter((visit) => userId === null || visit.userId === userId)
    .map((visit) => ({
      ...visit,
      ...readClock(timeZone, visit.at),
      count: Number(visitSeqs.has(visit.seq)),
    }));
  const within = visits.filter(({ day }) => day >= start && day < end);
  const before = new Set(visits.filter(({ day }) => day < start).map((visit) => visit.customerId));
  const active = new Set(within.map((visit) => visit.customerId));
  const isRedemption = ({ name }: { name: string }) => name === 'reward.redeemed';
  return {
    stamps: within.reduce((sum, entry) => sum + (isRedemption(entry) ? 0 : entry.stamps), 0),
    redemptions: within.filter(isRedemption).length,
    active_customers: active.size,
    returning_customers: [...active].filter((id) => before.has(id)).length,
    visits: within,
  };
}

async function expectCounts(history: RandomHistory, timeZone: string): Promise<void> {
  const statistics = service.app.get(StatisticsService, { strict: false });
  for (const interval of INTERVALS) {
    for (const scope of SCOPES) {
      const filter = {
        interval,
        ...scope,
        from: new Date(BEGIN),
        to: NOW,
        breakdown: 'user' as const,
      };
      const { accountId } = history.store;
      const { series, by_hour, to, breakdown } = await statistics.get(accountId, filter, NOW);
      expect(series.length).toBeGreaterThan(9);
      const hours = Array.from({ length: 7 }, () => Array.from({ length: 24 }, () => 0));
      const byUser = new Map<number, { visits: number; stamps: number }>();
      for (const [i, { new_customers: _, start, ...counts }] of series.entries()) {
        const end = series[i + 1]?.start ?? `${to}~`;
        const { visits, ...expected } = model(history, timeZone, { start, end }, filter);
        expect({ interval, scope, start, ...counts }).toEqual({
          interval,
          scope,
          start,
          ...expected,
        });
        for (const { day, hour, userId, stamps, count } of visits) {
          const row = hours[(new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7];
          if (row) row[hour] = (row[hour] ?? 0) + count;
          if (userId === null) continue;
          const sums = byUser.get(userId) ?? { visits: 0, stamps: 0 };
          byUser.set(userId, {
            visits: sums.visits + count,
            stamps: sums.stamps + Math.max(0, stamps),
          });
        }
      }
      expect(by_hour).toEqual(hours);
      const actual = new Map(breakdown?.map(({ id, visits, stamps }) => [id, { visits, stamps }]));
      expect(actual).toEqual(byUser);
    }
  }
}

const countAll = async (counting = table) => {
  while (await counting.addNext());
};

async function newHistory(
  seed: number,
  timeZone: string,
  customerCount = 12,
): Promise<RandomHistory> {
  const store = await service.newStore({ timeZone });
  const { rows } = await pool.query<{ id: number }>(
    `insert into customers (id, account_id, revision, hash, projection_version, state)
     select nextval('customers_id'), $1, 0, '', 1, '{}' from generate_series(1, $2) returning id`,
    [store.accountId, customerCount],
  );
  return new RandomHistory(
    store,
    seed,
    rows.map(({ id }) => id),
  );
}

describe('the statistics', () => {
  it.each([
    [1, 'Europe/Berlin'],
    [2, 'America/St_Johns'],
    [3, 'Pacific/Apia'],
  ])(
    'agree with a model that looks at every visit, after each part of history %i in %s',
    async (seed, timeZone) => {
      const history = await newHistory(seed, timeZone);
      for (const count of [1, 30, 200]) {
        await history.add(count);
        await countAll();
        await expectCounts(history, timeZone);
      }
    },
  );

  it('agree with the model for a customer with more visits than are read at a time', async () => {
    const pageSizes = { first: 2, next: () => 3 };
    const inSmallPages = new StatisticsTable(pool, new CustomerVisits(pool, pageSizes));
    const history = await newHistory(8, 'Europe/Berlin', 1);
    for (const count of [300, 1, 1, 1, 40]) {
      await history.add(count);
      await countAll(inSmallPages);
      await expectCounts(history, 'Europe/Berlin');
    }
    expect((await new StatisticsVerification(pool).verify(false)).errors).toEqual([]);
  });

  it('count everything anew when a store moves to another time zone', async () => {
    const history = await newHistory(4, 'Europe/Berlin');
    await history.add(150);
    await countAll();
    await pool.query(
      `update accounts set state = jsonb_set(state, '{timeZone}', '"Asia/Tokyo"') where id = $1`,
      [history.store.accountId],
    );
    await history.add(50);
    await countAll();
    await expectCounts(history, 'Asia/Tokyo');
  });

  it('are counted once when two processes count at the same time', async () => {
    const history = await newHistory(5, 'Europe/Berlin');
    await history.add(100);
    const results = await Promise.allSettled([table.addNext(), table.addNext(), table.addNext()]);
    expect(results.some(({ status }) => status === 'fulfilled')).toBe(true);
    await countAll();
    await expectCounts(history, 'Europe/Berlin');
  });

  it('are found to differ from the history, and are repaired', async () => {
    const history = await newHistory(6, 'Europe/Berlin');
    await history.add(100);
    await countAll();
    const verification = new StatisticsVerification(pool);
    expect((await verification.verify(false)).errors).toEqual([]);
    await pool.query(
      `update statistics_hours set stamps = stamps + 1
       where (account_id, card_id, location_id, user_id, day, hour) in (
         select account_id, card_id, location_id, user_id, day, hour from statistics_hours where account_id = $1 limit 1)`,
      [history.store.accountId],
    );
    await pool.query(
      `delete from statistics_hours where (account_id, card_id, location_id, user_id, day, hour) in (
         select account_id, card_id, location_id, user_id, day, hour from statistics_hours where account_id = $1 and card_id = 2 limit 1)`,
      [history.store.accountId],
    );
    const { errors } = await verification.verify(false);
    expect(errors.length).toBeGreaterThan(0);
    expect(errors[0]).toContain(`account ${history.store.accountId}`);
    await verification.verify(true);
    expect((await verification.verify(false)).errors).toEqual([]);
    await history.add(40);
    await countAll();
    await expectCounts(history, 'Europe/Berlin');
    expect((await verification.verify(false)).errors).toEqual([]);
  });

  it('tell customers whom an import added from those who joined', async () => {
    const { store } = await newHistory(7, 'Europe/Berlin');
    for (const channel of ['api', 'import', 'import']) {
      await pool.query(
        `insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at, latest_recorded_at,
           occurred_at, channel, actor)
         values ($2::bigint, $3::uuid, 'joined-' || $2::bigint, 0, lpad($2::bigint::text, 20, '9'), $1, 'customer.created', $4, $4, $4, $5, 'token:1')`,
        [store.accountId, ++seq, randomUUID(), NOW, channel],
      );
    }
    await countAll();
    const statistics = service.app.get(StatisticsService, { strict: false });
    const scope = { cardId: null, locationId: null, userId: null };
    const { today } = await statistics.getToday(store.accountId, scope, NOW);
    expect(today).toMatchObject({ new_customers: 1, imported_customers: 2 });
    const filter = { ...scope, interval: 'day', from: null, to: null, breakdown: null } as const;
    expect(await statistics.countImported(store.accountId, filter, NOW)).toBe(2);
    expect((await new StatisticsVerification(pool).verify(false)).errors).toEqual([]);
  });

  it('compare today with the same hours a week ago', async () => {
    const history = await newHistory(10, 'Europe/Berlin');
    const { accountId } = history.store;
    const counts = (stamps: number) => ({ visits: 1, stamps, redemptions: 0 });
    const at = (time: string) => Date.parse(time);
    await history.stamp(at('2025-06-06T09:30:00Z'), 1, 2);
    await history.stamp(at('2025-06-06T15:00:00Z'), 2, 3);
    await history.stamp(at('2025-06-13T09:10:00Z'), 3, 1);
    await countAll();
    const statistics = service.app.get(StatisticsService, { strict: false });
    const scope = { cardId: null, locationId: null, userId: null };
    const now = new Date('2025-06-13T10:20:00Z');
    const result = await statistics.getToday(accountId, scope, now);
    expect(result).toMatchObject({
      day: '2025-06-13',
      hour: 12,
      today: counts(1),
      before: { untilHour: counts(2), all: { visits: 2, stamps: 5, redemptions: 0 } },
    });
  });

  describe('of a store that is counted anew', () => {
    /** Counts, and fails for some customers until it is mended. */
    class FailingVisits extends CustomerVisits {
      customerIds = new Set<number>();

      override async addAll(...args: Parameters<CustomerVisits['addAll']>): Promise<void> {
        this.check([...args[0].keys()]);
        await super.addAll(...args);
      }

      override async addChanged(...args: Parameters<CustomerVisits['addChanged']>): Promise<void> {
        this.check(args[0].map(({ customerId }) => customerId));
        await super.addChanged(...args);
      }

      private check(customerIds: number[]): void {
        if (customerIds.some((id) => this.customerIds.has(id)))
          throw new Error('canceling statement due to statement timeout');
      }
    }

    const inLittleMemory = () => new StoreRecounts(pool, new CustomerVisits(pool), 10);
    const moveTo = (timeZone: string, { store }: RandomHistory) =>
      pool.query(
        `with entry as (
           insert into history (seq, event_id, stream, revision, position, account_id, name, recorded_at, latest_recorded_at,
             occurred_at, channel, actor)
           values ($3::bigint, $4::uuid, 'move-' || $4::uuid, 0, lpad($3::bigint::text, 20, '9'), $1, 'account.updated', $5, $5, $5, 'api', 'token:1'))
         update accounts set state = jsonb_set(state, '{timeZone}', to_jsonb($2::text)) where id = $1`,
        [store.accountId, timeZone, ++seq, randomUUID(), NOW],
      );
    const readStore = async ({ store }: RandomHistory) => {
      const { rows } = await pool.query<{
        generation: number;
        failures: number;
        is_waiting: boolean;
      }>(
        `select generation, recount_failures as failures, recount_at > now() as is_waiting
         from statistics_stores where account_id = $1`,
        [store.accountId],
      );
      return rows[0];
    };
    /** Expects that nothing but what is shown is left. */
    const expectOneGeneration = async (history: RandomHistory) => {
      const { rows } = await pool.query<{ generation: number }>(
        'select distinct generation from statistics_hours where account_id = $1',
        [history.store.accountId],
      );
      expect(rows).toEqual([{ generation: (await readStore(history))?.generation }]);
      expect((await pool.query('select from statistics_unused')).rowCount).toBe(0);
    };

    it('are the same in little memory, and while entries come and are undone', async () => {
      const history = await newHistory(9, 'Europe/Berlin', 450);
      await history.add(900);
      await countAll();
      await moveTo('Asia/Tokyo', history);
      const { rows } = await pool.query<{ seq: number }>('select max(seq) as seq from history');
      const { accountId } = history.store;
      const recount = inLittleMemory().create({
        accountId,
        timeZone: 'Asia/Tokyo',
        upTo: rows[0]?.seq ?? 0,
      });
      let pageCount = 0;
      do {
        await history.add(20);
        await table.addNext();
        pageCount++;
      } while (await recount.countNext());
      expect(pageCount).toBeGreaterThan(4);
      await recount.publish();
      await history.add(20);
      await countAll();
      await expectCounts(history, 'Asia/Tokyo');
      await expectOneGeneration(history);
      expect(
        (await new StatisticsVerification(pool, inLittleMemory()).verify(false)).errors,
      ).toEqual([]);
      await expectOneGeneration(history);
    });

    it('are repaired in little memory', async () => {
      const history = await newHistory(10, 'Europe/Berlin');
      await history.add(100);
      await countAll();
      await pool.query('update statistics_hours set visits = visits + 1 where account_id = $1', [
        history.store.accountId,
      ]);
      const verification = new StatisticsVerification(pool, inLittleMemory());
      expect((await verification.verify(true)).errors).not.toEqual([]);
      expect((await verification.verify(false)).errors).toEqual([]);
      await countAll();
      await expectCounts(history, 'Europe/Berlin');
      await expectOneGeneration(history);
    });

    it('stay as they are when the process is killed, and what it wrote is removed', async () => {
      const history = await newHistory(11, 'Europe/Berlin', 450);
      await history.add(300);
      await countAll();
      const { accountId } = history.store;
      const recount = inLittleMemory().create({ accountId, timeZone: 'Asia/Tokyo', upTo: seq });
      for (let i = 0; i < 3; i++) expect(await recount.countNext()).toBe(true);
      const { rowCount } = await pool.query(
        "update statistics_unused set remove_at = now() where remove_at > now() + interval '9 minutes'",
      );
      expect(rowCount).toBe(1);
      await expectCounts(history, 'Europe/Berlin');
      await countAll();
      await expectOneGeneration(history);
      await expectCounts(history, 'Europe/Berlin');
      await expect(recount.publish()).rejects.toThrow('the counts were removed meanwhile');
      await expectCounts(history, 'Europe/Berlin');
    });

    it('wait longer each time that they cannot be counted, and delay no other store', async () => {
      const [failing, otherHistory] = [
        await newHistory(12, 'Europe/Berlin'),
        await newHistory(13, 'Europe/Berlin'),
      ];
      for (const history of [failing, otherHistory]) await history.add(60);
      await countAll();
      const visits = new FailingVisits(pool);
      const counting = new StatisticsTable(pool, visits);
      const { rows } = await pool.query<{ id: number }>(
        'select id from customers where account_id = $1',
        [failing.store.accountId],
      );
      visits.customerIds = new Set(rows.map(({ id }) => id));
      await moveTo('Asia/Tokyo', failing);
      await moveTo('Asia/Tokyo', otherHistory);
      for (const failures of [1, 2]) {
        for (const history of [failing, otherHistory]) await history.add(30);
        await countAll(counting);
        await expectCounts(otherHistory, 'Asia/Tokyo');
        expect(await readStore(failing)).toMatchObject({ failures, is_waiting: true });
        await pool.query('update statistics_stores set recount_at = now() where account_id = $1', [
          failing.store.accountId,
        ]);
      }
      expect((await new StatisticsVerification(pool).verify(false)).errors).toEqual([]);
      visits.customerIds.clear();
      await countAll(counting);
      await expectCounts(failing, 'Asia/Tokyo');
      expect(await readStore(failing)).toMatchObject({ failures: 0, is_waiting: null });
      await expectOneGeneration(failing);
    });

    it('are counted anew when the next entries of a store cannot be counted', async () => {
      const [failing, otherHistory] = [
        await newHistory(14, 'Europe/Berlin'),
        await newHistory(15, 'Europe/Berlin'),
      ];
      await failing.add(30);
      await countAll();
      const visits = new FailingVisits(pool);
      const counting = new StatisticsTable(pool, visits);
      visits.customerIds = new Set(failing.entries.map(({ customerId }) => customerId));
      for (const history of [failing, otherHistory, failing, otherHistory]) await history.add(20);
      await countAll(counting);
      await expectCounts(otherHistory, 'Europe/Berlin');
      expect(await readStore(failing)).toMatchObject({ failures: 1, is_waiting: true });
      visits.customerIds.clear();
      await pool.query('update statistics_stores set recount_at = now() where account_id = $1', [
        failing.store.accountId,
      ]);
      await countAll(counting);
      await expectCounts(failing, 'Europe/Berlin');
      expect((await new StatisticsVerification(pool).verify(false)).errors).toEqual([]);
    });
  });
});
