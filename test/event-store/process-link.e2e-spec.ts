import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { ProcessLink } from '#platform/database/process-link.js';
import { createTestDatabase, testConfig, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';

let database: TestDatabase;
let links: ProcessLink[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(links.map((link) => link.onApplicationShutdown()));
  links = [];
});
afterAll(() => database.close());

function openLink(): ProcessLink {
  const link = new ProcessLink(testConfig(database.url), 'test');
  links.push(link);
  return link;
}

const cutLinks = () =>
  database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name like 'inkpad test link %'`,
  );

const countLinks = async () =>
  (
    await database.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name like 'inkpad test link %'`,
    )
  ).rowCount;

it('one poll reads what all parts need, each with its own values', async () => {
  const link = openLink();
  const sums: number[] = [];
  const texts: string[] = [];
  link.join<{ sum: number }>({
    source: 'numbers as (select $1::int + $2::int as sum)',
    columns: '(select sum from numbers) as sum',
    getValues: () => [1, 2],
    receive: ({ sum }) => sums.push(sum),
  });
  link.join<{ words: string }>({
    columns: `$1::text || ' ' || $2 as words`,
    getValues: () => ['three', 'four'],
    receive: ({ words }) => texts.push(words),
  });
  await link.poll();
  expect([sums, texts]).toEqual([[3], ['three four']]);
  await eventually(
    () => sums.length,
    (count) => count > 2,
  );
  expect(await countLinks()).toBe(1);
});

it('a part that joins later is in the next poll', async () => {
  const link = openLink();
  await link.poll();
  let one = 0;
  link.join<{ one: number }>({ columns: '1 as one', receive: (row) => (one = row.one) });
  await link.poll();
  expect(one).toBe(1);
});

it('all channels are listened to on one connection, also on the one that follows', async () => {
  const link = openLink();
  const payloads: string[] = [];
  const missed: string[] = [];
  for (const channel of ['first', 'second']) {
    link.listen(
      channel,
      (payload) => payloads.push(`${channel} ${payload}`),
      () => missed.push(channel),
    );
  }
  const notify = async (payload: string) => {
    await database.query(`select pg_notify('first', $1), pg_notify('second', $1)`, [payload]);
    await eventually(
      () => payloads,
      (all) => all.includes(`first ${payload}`) && all.includes(`second ${payload}`),
    );
  };
  await link.poll();
  expect(missed).toEqual(['first', 'second']);
  await notify('one');
  await cutLinks();
  await eventually(
    () => missed.length,
    (count) => count === 4,
  );
  await notify('two');
  await eventually(countLinks, (count) => count === 1);
});

it('a channel is heard no more once that was ended, and one that was added meanwhile is', async () => {
  const link = openLink();
  await link.poll();
  const payloads: string[] = [];
  const end = link.listen('ended', (payload) => payloads.push(payload));
  link.listen('added', (payload) => payloads.push(payload));
  await link.poll();
  end();
  await database.query(`select pg_notify('ended', 'ended'), pg_notify('added', 'added')`);
  await eventually(
    () => payloads.length,
    (count) => count > 0,
  );
  expect(payloads).toEqual(['added']);
  const text = 'select array(select pg_listening_channels()) as channels';
  expect(await link.current?.query({ text })).toEqual([{ channels: ['added'] }]);
});

it('a poll that fails leaves the session and its locks, and later ones succeed', async () => {
  const link = openLink();
  let count = 0;
  await link.onOpen(async (connection) => {
    await connection.query({ text: 'select pg_advisory_lock(990099)' });
  });
  link.join({ columns: '(select count(*) from missing) as missing', receive: () => count++ });
  let pollCount = 0;
  link.onPoll(() => pollCount++);
  await link.poll();
  const { current } = link;
  await eventually(
    () => pollCount,
    (polls) => polls > 2,
  );
  await link.poll();
  expect([count, link.current === current, current?.lost.aborted]).toEqual([0, true, false]);
  await database.query('create table missing (); grant select on missing to public');
  await link.poll();
  expect([count > 0, link.current === current]).toEqual([true, true]);
});

it('a poll that has to wait for a lock ends before the connection counts as silent', async () => {
  const link = openLink();
  await database.query('create table locked (); grant select on locked to public');
  let count = 0;
  link.join({ columns: '(select count(*) from locked) as locked', receive: () => count++ });
  await link.poll();
  const { current } = link;
  await database.query('begin; lock table locked');
  await link.poll();
  await database.query('commit');
  await link.poll();
  expect([count > 1, link.current === current]).toEqual([true, true]);
});

it('a connection that is lost again and again is opened again after a delay', async () => {
  const link = openLink();
  const lostAt: number[] = [];
  link.onLost(() => lostAt.push(performance.now()));
  link.onPoll(() => void link.current?.end(new Error('a part has failed')));
  await link.poll();
  await eventually(
    () => lostAt.length,
    (count) => count > 3,
  );
  // The second one is opened at once.
  const gaps = lostAt.slice(2).map((at, i) => at - (lostAt[i + 1] ?? NaN));
  expect(Math.min(...gaps)).toBeGreaterThan(200);
});

it('a lost connection is closed, whatever is done about the loss', async () => {
  const link = openLink();
  await link.poll();
  const { current } = link;
  let lossCount = 0;
  link.onLost(() => {
    lossCount++;
    throw new Error('a listener has failed');
  });
  link.join({
    columns: '1 as one',
    receive: () => {
      if (link.current === current) throw new Error('a part has failed');
    },
  });
  await link.poll();
  await eventually(
    () => link.current,
    (connection) => connection !== undefined && connection !== current,
  );
  expect(lossCount).toBe(1);
  await eventually(countLinks, (count) => count === 1);
});

it('one query runs at a time, also after one that fails', async () => {
  const link = openLink();
  await link.poll();
  const results = await Promise.allSettled(
    ['select 1 as one', 'select nothing', 'select 3 as three'].map((text) =>
      link.current?.query({ text }),
    ),
  );
  expect(results).toMatchObject([
    { value: [{ one: 1 }] },
    { status: 'rejected' },
    { value: [{ three: 3 }] },
  ]);
});

it('whoever waits for a poll waits no longer than until the process ends', async () => {
  const link = openLink();
  const poll = link.poll();
  await link.onApplicationShutdown();
  await poll;
  await link.poll();
  expect(link.current).toBeUndefined();
});
