import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Pool } from 'pg';
import { CustomerVisits } from '#loyalty/statistics/customer-visits.service.js';
import { StatisticsTable } from '#loyalty/statistics/statistics-table.service.js';
import { StoreRecounts } from '#loyalty/statistics/store-recounts.service.js';
import { StatisticsVerification } from '#loyalty/statistics/statistics-verification.service.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { testConfig } from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { openHistory } from '../support/services/history.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Counts a store anew while the next entries of the history are counted. */

let service: LocalService;
let pool: Pool;
let table: StatisticsTable;

beforeAll(async () => {
  service = await startService();
  pool = service.app.get(Pool);
  table = new StatisticsTable(pool);
  const history = await openHistory(testConfig(service.database.url, service.environment));
  const stopping = new AbortController();
  const filling = history.subscription.run(stopping.signal);
  service.onStop(async () => {
    stopping.abort();
    await filling;
    await history.close();
  });
});
afterAll(() => service.stop());

function createGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

/** Stops after the visits of a customer have been read, until it is released. */
class HeldVisits extends CustomerVisits {
  private readonly arrival = createGate();
  private readonly departure = createGate();
  private hasStopped = false;

  constructor(private readonly customerId: number) {
    super(pool);
  }

  readonly arrived = this.arrival.opened;
  readonly release = this.departure.open;

  override async addAll(...args: Parameters<CustomerVisits['addAll']>): Promise<void> {
    await super.addAll(...args);
    if (args[0].has(this.customerId)) await this.hold();
  }

  override async addChanged(...args: Parameters<CustomerVisits['addChanged']>): Promise<void> {
    await super.addChanged(...args);
    if (args[0].some(({ customerId }) => customerId === this.customerId)) await this.hold();
  }

  private async hold(): Promise<void> {
    if (this.hasStopped) return;
    this.hasStopped = true;
    this.arrival.open();
    await this.departure.opened;
  }
}

class Shop {
  constructor(
    readonly store: Client,
    readonly customerId: number,
    private readonly path: string,
  ) {}

  async stamp(times: number): Promise<void> {
    for (let i = 0; i < times; i++) await this.store.stamp(this.path);
    await waitForHistory();
  }

  async countStamps(): Promise<number> {
    const { rows } = await pool.query<{ stamps: number }>(
      `select sum(stamps)::int as stamps from statistics_hours
       where account_id = $1 and card_id = 0 and location_id = 0 and user_id = 0`,
      [this.store.accountId],
    );
    return rows[0]?.stamps ?? 0;
  }

  async spoilCounts(): Promise<void> {
    await pool.query('update statistics_hours set stamps = stamps + 100 where account_id = $1', [
      this.store.accountId,
    ]);
  }
}

/** Opens a shop whose counts differ from its history of two stamps. */
async function openSpoiledShop(): Promise<Shop> {
  const store = await service.newStore({ timeZone: 'Europe/Berlin' });
  const { customer, path } = await enrol(store);
  const shop = new Shop(store, customer.id, path);
  await shop.stamp(2);
  await countAll();
  expect(await shop.countStamps()).toBe(2);
  await shop.spoilCounts();
  return shop;
}

async function waitForHistory(): Promise<void> {
  const { length } = await service.history();
  await eventually(
    async () => (await pool.query('select from history')).rowCount,
    (count) => count === length,
  );
}

async function countAll(): Promise<void> {
  while (await table.addNext());
}

/** Begins to count the next entries, and stops before anything is written. */
async function holdStep({ customerId }: Shop) {
  const visits = new HeldVisits(customerId);
  const step = new StatisticsTable(pool, visits).addNext();
  await visits.arrived;
  return async () => {
    visits.release();
    await step.catch((error: unknown) => {
      if (!(error instanceof OvertakenError)) throw error;
    });
  };
}

/** Begins to repair, and stops after the visits have been read. */
async function holdRepair({ customerId }: Shop) {
  const visits = new HeldVisits(customerId);
  const verification = new StatisticsVerification(pool, new StoreRecounts(pool, visits));
  const repair = verification.verify(true);
  await visits.arrived;
  return async () => {
    visits.release();
    await repair;
  };
}

const verify = (repair: boolean) => new StatisticsVerification(pool).verify(repair);

describe('counting a store anew', () => {
  it('counts nothing twice when a step read entries before it and writes after it', async () => {
    const shop = await openSpoiledShop();
    await shop.stamp(3);
    const endStep = await holdStep(shop);
    await verify(true);
    await endStep();
    await countAll();
    expect(await shop.countStamps()).toBe(5);
    expect((await verify(false)).errors).toEqual([]);
  });

  it('counts nothing twice when such a step waits for it to commit', async () => {
    const shop = await openSpoiledShop();
    await shop.stamp(3);
    const endStep = await holdStep(shop);
    const otherClient = await pool.connect();
    await otherClient.query('begin');
    await otherClient.query('select from statistics_stores where account_id = $1 for update', [
      shop.store.accountId,
    ]);
    const waitForWaiting = (count: number) =>
      eventually(
        async () => {
          const { rowCount } = await service.database.query(
            `select from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and query like '%statistics_%'`,
          );
          return rowCount;
        },
        (waitingCount) => waitingCount === count,
      );
    const repair = verify(true);
    await waitForWaiting(1);
    const step = endStep();
    await waitForWaiting(2);
    await otherClient.query('commit');
    otherClient.release();
    await Promise.all([repair, step]);
    await countAll();
    expect(await shop.countStamps()).toBe(5);
    expect((await verify(false)).errors).toEqual([]);
  });

  it('loses nothing when it replaces counts up to a later entry', async () => {
    const shop = await openSpoiledShop();
    const endRepair = await holdRepair(shop);
    await shop.stamp(3);
    await verify(true);
    await shop.stamp(1);
    const endStep = await holdStep(shop);
    await endRepair();
    await endStep();
    await countAll();
    expect(await shop.countStamps()).toBe(6);
    expect((await verify(false)).errors).toEqual([]);
  });

  it('counts the same of customers who are merged, unmerged and erased, also in little memory', async () => {
    const store = await service.newStore({ timeZone: 'Europe/Berlin' });
    const people = [];
    for (let i = 0; i < 4; i++) {
      const { customer, path } = await enrol(store);
      const shop = new Shop(store, customer.id, path);
      await shop.stamp(2);
      people.push(shop);
    }
    const [survivor, merged, unmerged, erased] = people.map(({ customerId }) => customerId);
    const change = async (path: string, body?: object) =>
      expect((await store.post(`${store.store}/customers/${path}`, body)).status).toBeLessThan(300);
    await change(`${survivor}/merge`, { from_customer_id: merged });
    await change(`${survivor}/merge`, { from_customer_id: unmerged });
    await people[0]?.stamp(1);
    await change(`${survivor}/unmerge`, { from_customer_id: unmerged });
    await change(`${erased}/erase`);
    await people[2]?.stamp(1);
    await countAll();
    const [shop] = people;
    expect(await shop?.countStamps()).toBe(10);
    const verifyInLittleMemory = async (repair: boolean) => {
      const recounts = new StoreRecounts(pool, new CustomerVisits(pool), 1);
      return (await new StatisticsVerification(pool, recounts).verify(repair)).errors;
    };
    expect((await verify(false)).errors).toEqual([]);
    expect(await verifyInLittleMemory(false)).toEqual([]);
    const zone = { account: { time_zone: 'Asia/Tokyo' } };
    expect((await store.send('PATCH', store.store, zone)).status).toBe(200);
    await waitForHistory();
    await countAll();
    expect(await verifyInLittleMemory(false)).toEqual([]);
    await shop?.spoilCounts();
    expect(await verifyInLittleMemory(true)).not.toEqual([]);
    expect((await verify(false)).errors).toEqual([]);
    expect(await shop?.countStamps()).toBe(10);
  });

  it('goes on with the page that an outage has interrupted, without the pages before it', async () => {
    const shop = await openSpoiledShop();
    class InterruptedVisits extends CustomerVisits {
      outages = 0;
      override addAll(...args: Parameters<CustomerVisits['addAll']>): Promise<void> {
        if (this.outages++ < 2) throw new UnavailableError('The database cannot be reached');
        return super.addAll(...args);
      }
    }
    const visits = new InterruptedVisits(pool);
    const recounts = new StoreRecounts(pool, visits);
    await recounts.request([shop.store.accountId]);
    const query = jest.spyOn(pool, 'query');
    const results: unknown[] = [];
    const advance = () => recounts.advance().catch((error: unknown) => error);
    while (visits.outages < 3) results.push(await advance());
    while (await recounts.advance());
    const names = query.mock.calls.map(
      ([statement]: unknown[]) => (statement as { name?: string }).name,
    );
    query.mockRestore();
    expect(names.filter((name) => name === 'statistics_joined')).toHaveLength(2);
    expect(results.filter((result) => result instanceof UnavailableError)).toHaveLength(2);
    expect(await shop.countStamps()).toBe(2);
    expect((await verify(false)).errors).toEqual([]);
  });

  it('uses the time zone to which the store moves during a repair', async () => {
    const shop = await openSpoiledShop();
    const { store } = shop;
    const endRepair = await holdRepair(shop);
    const { status } = await store.send('PATCH', store.store, {
      account: { time_zone: 'Asia/Tokyo' },
    });
    expect(status).toBe(200);
    await waitForHistory();
    await countAll();
    await endRepair();
    await countAll();
    const { rows } = await pool.query(
      'select time_zone from statistics_stores where account_id = $1',
      [store.accountId],
    );
    expect(rows).toEqual([{ time_zone: 'Asia/Tokyo' }]);
    expect(await shop.countStamps()).toBe(2);
    expect((await verify(false)).errors).toEqual([]);
  });
});
