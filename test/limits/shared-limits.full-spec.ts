import { randomUUID } from 'node:crypto';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { Authenticator } from '#platform/http/caller.js';
import { CreateToken } from '#identity/token.commands.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { openSecondStore } from '../support/fixtures/second-store.js';
import { TestRedis } from '../support/database/redis.js';
import { cli, Client, startService, type Service } from '../support/services/service.js';

const LIMIT = 50;
const STORE_LIMIT = 20;
const UNAVAILABLE_MESSAGE = 'Redis is unavailable';
const AVAILABLE_MESSAGE = 'Redis is back';

type Api = { program: Program; baseUrl: string };

describe('two apis that share a Redis', () => {
  let redis: TestRedis;
  let database: TestDatabase;
  let service: Service;
  let token: string;
  const apis: Api[] = [];

  beforeAll(async () => {
    redis = await TestRedis.start();
    database = await createTestDatabase();
    // Only creates stores and tokens: the requests of these tests go to the two programs.
    service = await startService({ REDIS_URL: redis.url }, database);
    for (let i = 0; i < 2; i++) apis.push(await startApi(database, redis.url));
  });
  afterAll(async () => {
    await Promise.all(apis.map(({ program }) => program.kill('SIGTERM')));
    await service.stop();
    await redis.stop();
  });
  beforeEach(async () => {
    token = (await service.newStore()).token ?? '';
  });

  const request = (api: number) =>
    new Client(apis[api]?.baseUrl ?? '', 0, token).get('/api/v1/accounts');
  const requestRemaining = async (api: number) => {
    const { status, headers } = await request(api);
    expect([200, 429]).toContain(status);
    return Number(headers.get('ratelimit-remaining'));
  };
  const countUnavailable = () =>
    apis.map(({ program }) => countInOutput(program, UNAVAILABLE_MESSAGE));
  const whileShared = <R>(run: () => Promise<R>) => runWhileShared(redis, apis, run);

  it('count requests together in one fixed window', async () => {
    // The window starts with the first request, and no later one extends it.
    const readEnd = () =>
      redis.query(async (client) => {
        const [key = ''] = await client.keys('inkpad:token *');
        return client.pexpiretime(key);
      });
    const { counts, resets, ends } = await whileShared(async () => {
      const remaining = [];
      for (let i = 0; i < 6; i++) remaining.push(await requestRemaining(i % 2));
      const responses = [await request(0), await request(1)];
      const end = await readEnd();
      await requestRemaining(0);
      return {
        counts: remaining,
        resets: responses.map(({ headers }) => Number(headers.get('ratelimit-reset'))),
        ends: [end, await readEnd()],
      };
    });
    expect(counts).toEqual([49, 48, 47, 46, 45, 44]);
    for (const reset of resets) expect(reset).toBeGreaterThan(0);
    for (const reset of resets) expect(reset).toBeLessThanOrEqual(60);
    expect(ends[0]).toBeGreaterThan(0);
    expect(ends[1]).toBe(ends[0]);
  });

  it('allow exactly the limit of many concurrent requests', async () => {
    const responses = await whileShared(() =>
      Promise.all(Array.from({ length: LIMIT + 20 }, (_, i) => request(i % 2))),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(LIMIT);
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(20);
    for (const { headers } of refused) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect(apis.map(({ program }) => program.output().includes('without REDIS_URL'))).toEqual([
      false,
      false,
    ]);
  });

  it('allow exactly the limit of a store, across tokens and apis', async () => {
    const store = await service.newStore();
    const { token: otherToken } = await service.execute(new CreateToken(cli, store.email, 'other'));
    const requestStore = (i: number) =>
      new Client(
        apis[i % 2]?.baseUrl ?? '',
        store.accountId,
        i % 4 < 2 ? store.token : otherToken,
      ).get(store.store);
    const responses = await whileShared(() =>
      Promise.all(Array.from({ length: STORE_LIMIT + 8 }, (_, i) => requestStore(i))),
    );
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(STORE_LIMIT);
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.map(({ headers }) => headers.get('ratelimit-limit'))).toEqual(
      Array(8).fill(String(STORE_LIMIT)),
    );
  });

  it('report the least of what a token, its store and all stores of the owner have left', async () => {
    const store = await service.newStore();
    const paths = [store.store];
    for (let i = 0; i < 2; i++) {
      paths.push(`/api/v1/accounts/${await openSecondStore(service, store)}`);
    }
    const [first = '', second = '', third = ''] = paths;
    const requests = [...times(15, first), ...times(15, second), ...times(11, third)];
    const limits = await whileShared(async () => {
      const responses = [];
      for (const [i, path] of requests.entries()) {
        const client = new Client(apis[i % 2]?.baseUrl ?? '', store.accountId, store.token);
        const { status, headers } = await client.get(path);
        const [limit, remaining] = ['limit', 'remaining'].map((name) =>
          Number(headers.get(`ratelimit-${name}`)),
        );
        responses.push([status, limit, remaining]);
      }
      return responses;
    });
    const countDown = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => [200, LIMIT, from - i]);
    expect(limits).toEqual([
      ...countDown(STORE_LIMIT - 1, 15),
      ...countDown(STORE_LIMIT - 1, 15),
      // The stores of an owner have twice as much as one.
      ...countDown(2 * STORE_LIMIT - 31, 10),
      [429, 2 * STORE_LIMIT, 0],
    ]);
  });

  it('count a request for its store whose rights become known while it is counted', async () => {
    const limited = await startService({ REDIS_URL: redis.url, STORE_RATE_LIMIT_PER_MINUTE: '2' });
    try {
      const authenticator = limited.app.get(Authenticator);
      // Again, should a busy machine take so long for a count in Redis that it is made apart.
      await eventually(
        async () => {
          const store = await limited.newStore();
          // As on a busy machine, where no process knows for some moments whether rights have changed.
          jest.spyOn(authenticator, 'findKnownDenial').mockReturnValueOnce(undefined);
          const statuses = [];
          for (let i = 0; i < 3; i++) statuses.push((await store.get(store.store)).status);
          return statuses.join(' ');
        },
        (statuses) => statuses === '200 200 429',
      );
    } finally {
      await limited.stop();
    }
  });

  it('count a batch of 30 operations as three requests, or as one when it does not fit', async () => {
    const store = await service.newStore();
    const create = (api: number) =>
      new Client(apis[api]?.baseUrl ?? '', store.accountId, store.token);
    const operation = { operation: 'stamp', customer_card_id: 999_999, stamps: 1 };
    const body = { operations: Array.from({ length: 30 }, () => operation) };
    const statuses = await whileShared(async () => {
      const responses = [];
      for (let i = 0; i < 7; i++) {
        responses.push(await create(i % 2).post(`${store.store}/batch`, body));
      }
      for (let i = 0; i < 2; i++) responses.push(await create(i % 2).get(store.store));
      return responses.map(({ status }) => status);
    });
    expect(statuses).toEqual([...Array(6).fill(200), 429, 200, 429]);
  });

  it.each([
    ['killed', () => redis.kill(), () => redis.begin()],
    ['hung', async () => redis.hang(), async () => redis.goOn()],
  ])(
    'count separately while Redis is %s, and together again afterwards',
    async (_how, makeUnavailable, makeAvailable) => {
      await whileShared(() => requestRemaining(0));
      const unavailableCounts = countUnavailable();
      await makeUnavailable();
      // The first request to each api may notice that Redis is unavailable; it must not fail.
      expect([(await request(0)).status, (await request(1)).status]).toEqual([200, 200]);
      const before = [await requestRemaining(0), await requestRemaining(1)];
      expect([await requestRemaining(0), await requestRemaining(1)]).toEqual(
        before.map((count) => count - 1),
      );
      for (const { baseUrl } of apis) {
        expect((await fetch(`${baseUrl}/health/ready`)).status).toBe(200);
      }
      await Promise.all(apis.map(readLinesSoFar));
      expect(countUnavailable()).toEqual(unavailableCounts.map((n) => n + 1));

      await makeAvailable();
      const counts = await whileShared(async () => [
        await requestRemaining(0),
        await requestRemaining(1),
        await requestRemaining(0),
      ]);
      expect(counts).toEqual([49, 48, 47]);
    },
  );
});

describe('an api with REDIS_URL', () => {
  let database: TestDatabase;
  let api: Api;
  let redis: TestRedis;

  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await api.program.kill('SIGTERM');
    await redis.stop();
    await database.close();
  });

  it('starts without Redis, and uses it once it is available', async () => {
    redis = await TestRedis.start();
    await redis.kill();
    api = await startApi(database, redis.url);
    expect((await fetch(`${api.baseUrl}/api/v1/status`)).status).toBe(200);
    expect(api.program.output()).toContain(UNAVAILABLE_MESSAGE);
    await redis.begin();
    await eventually(api.program.output, (text) => text.includes(AVAILABLE_MESSAGE));
    await fetch(`${api.baseUrl}/api/v1/status`);
    expect(await redis.query((client) => client.get('inkpad:ip 127.0.0.1'))).toBe('1');
  });

  it('counts in memory while Redis responds to PING but refuses writes', async () => {
    redis = await TestRedis.start();
    api = await startApi(database, redis.url);
    const requestRemaining = async () => {
      const { headers } = await fetch(`${api.baseUrl}/api/v1/status`);
      return Number(headers.get('ratelimit-remaining'));
    };
    const { program } = api;
    const countMessages = () => [
      countInOutput(program, UNAVAILABLE_MESSAGE),
      countInOutput(program, AVAILABLE_MESSAGE),
    ];
    const countErrors = async () => {
      const errors = await redis.query((client) => client.info('errorstats'));
      return Number(/errorstat_OOM:count=(\d+)/.exec(errors)?.[1]);
    };
    expect(await runWhileShared(redis, [api], requestRemaining)).toBe(LIMIT - 1);
    const [count = 0] = countMessages();
    await redis.query((client) => client.config('SET', 'maxmemory', '1'));
    expect(await requestRemaining()).toBe(LIMIT - 1);
    const before = await countErrors();
    // The api checks again and again, and Redis responds each time.
    await eventually(
      async () => (countMessages()[1] ?? 0) > count || (await countErrors()) >= before + 3,
      (isOver) => isOver,
    );
    expect(countMessages()).toEqual([count + 1, count]);
    expect(await requestRemaining()).toBe(LIMIT - 2);
    await redis.query((client) => client.config('SET', 'maxmemory', '0'));
    await eventually(countMessages, ([, available]) => available === count + 1);
    expect(await requestRemaining()).toBe(LIMIT - 2);
    expect(countMessages()).toEqual([count + 1, count + 1]);
  });

  it('counts in memory when Redis refuses writes from the start, and never logs the password', async () => {
    redis = await TestRedis.start();
    await redis.query((client) => client.config('SET', 'maxmemory', '1'));
    const url = redis.url.replace('//', '//:s3cret@');
    api = await startApi(database, url);
    for (const remaining of ['49', '48']) {
      const { headers } = await fetch(`${api.baseUrl}/api/v1/status`);
      expect(headers.get('ratelimit-remaining')).toBe(remaining);
    }
    expect(api.program.output()).toContain(UNAVAILABLE_MESSAGE);
    expect(api.program.output()).not.toContain('s3cret');
  });
});

const times = (count: number, path: string): string[] => Array<string>(count).fill(path);

async function startApi(database: TestDatabase, redisUrl: string): Promise<Api> {
  const port = await findFreePort();
  const program = startProgram(
    'dist/apps/api/main.js',
    createTestEnvironment(database.url, {
      PORT: String(port),
      REDIS_URL: redisUrl,
      LOG_LEVEL: 'info',
      RATE_LIMIT_PER_MINUTE: String(LIMIT),
      STORE_RATE_LIMIT_PER_MINUTE: String(STORE_LIMIT),
    }),
  );
  await eventually(program.output, (text) => text.includes('listening on'));
  return { program, baseUrl: `http://127.0.0.1:${port}` };
}

/**
 * Redis may be late on a busy machine, and an api then counts by itself for a second: what ran meanwhile says nothing
 * about shared counts, and runs again. Begins each time without counts.
 */
async function runWhileShared<R>(redis: TestRedis, apis: Api[], run: () => Promise<R>): Promise<R> {
  const countAll = (text: string) => apis.map(({ program }) => countInOutput(program, text)).join();
  for (;;) {
    await eventually(
      () => [countAll(UNAVAILABLE_MESSAGE), countAll(AVAILABLE_MESSAGE)],
      ([unavailable, available]) => unavailable === available,
    );
    const before = countAll(UNAVAILABLE_MESSAGE);
    await redis.query((client) => client.flushall());
    const result = await run();
    await Promise.all(apis.map(readLinesSoFar));
    if (countAll(UNAVAILABLE_MESSAGE) === before) return result;
  }
}

/** Waits until everything that an api has logged is read: it writes lines in groups, in their order. */
async function readLinesSoFar({ program, baseUrl }: Api): Promise<void> {
  const requestId = randomUUID();
  await fetch(`${baseUrl}/robots.txt`, { headers: { 'X-Request-Id': requestId } });
  await eventually(program.output, (text) => text.includes(requestId));
}

function countInOutput(program: Program, text: string): number {
  return program.output().split(text).length - 1;
}
