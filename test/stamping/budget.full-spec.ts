import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { Client } from '../support/services/service.js';

/**
 * What a stamp takes.
 * @property functions of our own that it enters, each counted once
 * @property kilobytes that it allocates
 * @property timers set by packages
 */
type Counts = {
  promises: number;
  functions: number;
  kilobytes: number;
  statements: number;
  timers: number;
};

type Events = Pick<Counts, 'promises' | 'statements' | 'timers'>;

type Budget = Record<'plain' | 'till' | 'keyed', Counts>;

/** What a stamp has besides its number and its note. */
type StampRequest = { details?: object; headers?: Record<string, string> };

/**
 * What one stamp may take while everything that it needs is cached. Lower a number as soon as a change allows it. The few
 * functions beside 233, 258 and 280 are those of timers, which run as often as stamps on a slow machine.
 */
const POSTGRES_BUDGET: Budget = {
  plain: { promises: 24, functions: 235, kilobytes: 88, statements: 1, timers: 0 },
  till: { promises: 26, functions: 260, kilobytes: 98, statements: 1, timers: 0 },
  keyed: { promises: 38, functions: 282, kilobytes: 116, statements: 2, timers: 0 },
};
/**
 * A commit there cannot check what this process has cached, so each stamp reads its card. Its row follows the append, and a
 * receipt number precedes it: each is a statement of its own.
 */
const KURRENTDB_BUDGET: Budget = {
  plain: { promises: 83, functions: 288, kilobytes: 148, statements: 2, timers: 1 },
  till: { promises: 105, functions: 347, kilobytes: 208, statements: 3, timers: 1 },
  keyed: { promises: 125, functions: 364, kilobytes: 236, statements: 4, timers: 1 },
};
const BUDGET = process.env['TEST_ENGINE'] === 'eventstoredb' ? KURRENTDB_BUDGET : POSTGRES_BUDGET;

const RAISE = `Take another step away, or raise the budget for something that a user sees. The commit that raises it says
what a stamp does now that it did not do before, why that cannot happen at the start, when a route is registered, once for
many stamps or rarely, and what it costs at one caller: npm run bench -- stamps --concurrency 1 --against <the build before>`;

const PIN = { latitude: 53.55, longitude: 9.99 };
const WARM_UP_STAMPS = 500;
const STAMPS = 101;
const PRELOAD = new URL('../support/services/count-work.mjs', import.meta.url).href;

describe('the budget of a stamp', () => {
  let database: TestDatabase;
  let store: { account_id: number; api_token: string };

  beforeAll(async () => {
    database = await createTestDatabase();
    const setup = startProgram('dist/apps/cli/setup.js', createEnvironment());
    if ((await setup.exitCode) !== 0) throw new Error(setup.output());
    store = JSON.parse(setup.output()) as typeof store;
  });

  afterAll(async () => {
    await database.close();
  });

  const createEnvironment = (settings: NodeJS.ProcessEnv = {}) =>
    createTestEnvironment(database.url, settings);

  it('a plain stamp takes no more than its budget', async () => {
    const counts = await countStamps({ LOG_LEVEL: 'error' }, async () => () => ({}));
    expect(() => assertWithin('plain', counts)).not.toThrow();
  });

  it('a stamp with a receipt number, a location and a log line takes no more than its budget', async () => {
    const counts = await countStamps({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' }, async (client) => {
      const location = { name: 'Old Town', address: 'Coffee Street 1', pin: PIN };
      const { body } = await client.post<{ id: number }>(`${client.store}/locations`, { location });
      return (nth) => ({ details: { location_id: body.id, external_ref: `receipt ${nth}` } });
    });
    expect(() => assertWithin('till', counts)).not.toThrow();
  });

  it('a stamp with an Idempotency-Key takes no more than its budget', async () => {
    const counts = await countStamps({ LOG_LEVEL: 'error' }, async () => (nth) => ({
      headers: { 'idempotency-key': `stamp ${nth}` },
    }));
    expect(() => assertWithin('keyed', counts)).not.toThrow();
  });

  /** Counts the work of stamps in a process of the built api, as its users run it. */
  async function countStamps(
    settings: NodeJS.ProcessEnv,
    prepare: (client: Client) => Promise<(nth: number) => StampRequest>,
  ): Promise<Counts> {
    const port = await findFreePort();
    const { PATH, TMPDIR, NODE_COMPILE_CACHE } = process.env;
    const environment = createEnvironment({ ...settings, PORT: String(port) });
    const api = fork('dist/apps/api/main.js', {
      execArgv: ['--import', PRELOAD],
      env: { PATH, TMPDIR, NODE_COMPILE_CACHE, ...environment },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    api.stdout?.resume();
    const exited = once(api, 'exit');
    try {
      const ended = exited.then(() => Promise.reject(new Error('the api has ended')));
      ended.catch(() => undefined);
      const client = new Client(`http://127.0.0.1:${port}`, store.account_id, store.api_token);
      await eventually(
        () => client.get('/api/v1/status').catch(() => undefined),
        (response) => response?.status === 200,
      );
      const createRequest = await prepare(client);
      const { path } = await enrol(client, { rewards: [5, 10] });
      let nth = 0;
      const stamp = async (times: number) => {
        for (let i = 0; i < times; i++) {
          const { details, headers } = createRequest(nth++);
          const body = { stamps: 1, note: 'two flat whites', ...details };
          const { status, text } = await client.send('POST', `${path}/stamp`, body, headers);
          if (status !== 200) throw new Error(text);
        }
      };
      const request = async <R>(message: object): Promise<R> => {
        api.send(message);
        const [response] = (await Promise.race([once(api, 'message'), ended])) as [R];
        return response;
      };
      const count = async <M>(kind: string): Promise<M[]> => {
        await request({ start: kind });
        await stamp(STAMPS);
        return request({});
      };
      await stamp(WARM_UP_STAMPS);
      const heaps = await count<number>('heap');
      const events = await count<Events>('events');
      const [functions = []] = await count<number[]>('functions');
      return {
        promises: findTypical(events.map(({ promises }) => promises)),
        functions: functions.filter((calls) => calls >= STAMPS).length,
        kilobytes: Math.round(findTypical(findDifferences(heaps)) / 1024),
        statements: findTypical(events.map(({ statements }) => statements)),
        timers: findTypical(events.map(({ timers }) => timers)),
      };
    } finally {
      api.kill('SIGTERM');
      await exited;
    }
  }
});

function assertWithin(kind: keyof Budget, counts: Counts): void {
  const lines = Object.entries(BUDGET[kind]).map(([name, max]) => {
    const count = counts[name as keyof Counts];
    return { text: `${count} of ${max} ${name}`, isAbove: count > max };
  });
  console.log(`a ${kind} stamp takes ${lines.map(({ text }) => text).join(', ')}`);
  const excess = lines.filter(({ isAbove }) => isAbove).map(({ text }) => text);
  if (excess.length > 0) {
    throw new Error(`a ${kind} stamp takes more than its budget: ${excess.join(', ')}. ${RAISE}`);
  }
}

/** Finds what nine of ten exceed: the tenth is the share of requests that no work in the background got into. */
function findTypical(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 10)] ?? 0;
}

function findDifferences(values: number[]): number[] {
  return values.slice(1).map((value, i) => value - (values[i] ?? 0));
}
