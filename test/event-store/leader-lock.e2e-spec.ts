import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

const LOCKS = [990_001, 990_002, 990_003];

/** A process that wants to lead. */
type Process = {
  lock: LeaderLock;
  led: Set<number>;
  stepDown: (lock: number) => void;
  stop: () => Promise<void>;
};

let database: TestDatabase;
let processes: Process[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(processes.map(({ stop }) => stop()));
  processes = [];
});
afterAll(() => database.close());

function start(locks = LOCKS, link = new ProcessLink(testConfig(database.url), 'test')): Process {
  const stopping = new AbortController();
  const lock = new LeaderLock(link);
  const led = new Set<number>();
  const ends = new Map<number, () => void>();
  const running = locks.map((number) =>
    lock.lead({ name: `work ${number}`, lock: number }, stopping.signal, async (leading) => {
      led.add(number);
      await new Promise<void>((resolve) => {
        ends.set(number, resolve);
        leading.addEventListener('abort', () => resolve(), { once: true });
      });
      led.delete(number);
    }),
  );
  const stop = async () => {
    stopping.abort();
    await Promise.all(running);
    await link.onApplicationShutdown();
  };
  const process = { lock, led, stepDown: (number: number) => ends.get(number)?.(), stop };
  processes.push(process);
  return process;
}

const waitUntilLed = ({ led }: Process, locks = LOCKS) =>
  eventually(
    () => [...led].sort(),
    (numbers) => numbers.join() === locks.join(),
  );

async function listHolders(): Promise<{ pid: number; locks: number }[]> {
  const { rows } = await database.query<{ pid: number; locks: number }>(
    `select pid, count(*)::int as locks from pg_locks
     where locktype = 'advisory' and objid = any ($1) and granted
       and database = (select oid from pg_database where datname = current_database())
     group by pid`,
    [LOCKS],
  );
  return rows;
}

it('a process holds all of its locks on one connection', async () => {
  await waitUntilLed(start());
  expect(await listHolders()).toEqual([{ pid: expect.any(Number), locks: LOCKS.length }]);
});

it('a lock whose work steps down goes to another process, and the others stay', async () => {
  const one = start();
  await waitUntilLed(one);
  const other = start();
  one.stepDown(990_002);
  await waitUntilLed(other, [990_002]);
  expect([...one.led].sort()).toEqual([990_001, 990_003]);
});

it('all locks go to another process when the first one stops', async () => {
  const one = start([990_001, 990_002]);
  await waitUntilLed(one, [990_001, 990_002]);
  const other = start();
  await waitUntilLed(other, [990_003]);
  await one.stop();
  await waitUntilLed(other);
  expect(await listHolders()).toHaveLength(1);
});

it('all locks are held again after the connection was cut, each by one process', async () => {
  const process = start();
  await waitUntilLed(process);
  const [holder] = await listHolders();
  await database.query('select pg_terminate_backend($1)', [holder?.pid]);
  await eventually(
    listHolders,
    ([current]) => current?.pid !== holder?.pid && current?.locks === 3,
  );
  await waitUntilLed(process);
});

it('locks are granted although what the link reads cannot be read', async () => {
  const link = new ProcessLink(testConfig(database.url), 'test');
  link.join({ columns: '(select count(*) from missing) as missing', receive: () => undefined });
  await waitUntilLed(start(LOCKS, link));
  expect(await listHolders()).toHaveLength(1);
});

it('a request that the server refuses is made again on the same connection, with the other locks', async () => {
  const link = new ProcessLink(testConfig(database.url), 'test');
  const { lock, led } = start([990_001], link);
  await waitUntilLed({ led } as Process, [990_001]);
  const { current } = link;
  const stopping = new AbortController();
  try {
    await database.query('revoke execute on function pg_try_advisory_lock(bigint) from public');
    let requestCount = 0;
    link.onPoll(() => requestCount++);
    const otherLead = lock.lead(
      { name: 'other', lock: 990_002 },
      stopping.signal,
      async (leading) => {
        led.add(990_002);
        await new Promise<void>((resolve) => leading.addEventListener('abort', () => resolve()));
      },
    );
    await eventually(
      () => requestCount,
      (count) => count > 2,
    );
    expect([[...led], link.current === current]).toEqual([[990_001], true]);
    await database.query('grant execute on function pg_try_advisory_lock(bigint) to public');
    await waitUntilLed({ led } as Process, [990_001, 990_002]);
    expect(link.current).toBe(current);
    stopping.abort();
    await otherLead;
  } finally {
    await database.query('grant execute on function pg_try_advisory_lock(bigint) to public');
  }
});

it('work that fails is told to end before the lock is released', async () => {
  const link = new ProcessLink(testConfig(database.url), 'test');
  const stopping = new AbortController();
  let isTold = false;
  await new LeaderLock(link).lead(
    { name: 'failing', lock: 990_001 },
    stopping.signal,
    (leading) => {
      leading.addEventListener('abort', () => {
        isTold = true;
        stopping.abort();
      });
      return Promise.reject(new Error('a part of the work has failed'));
    },
  );
  expect(isTold).toBe(true);
  await link.onApplicationShutdown();
});
