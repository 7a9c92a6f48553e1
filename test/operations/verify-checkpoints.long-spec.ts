import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { appendFileSync, cpSync, mkdtempSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BEGINNING,
  type JsonObject,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { checkpointKey, startSigning } from '../support/fixtures/checkpoints.js';
import { testConfig, createTestEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * Runs `inkpad verify --checkpoints` against an operator who rewrites the history and covers it up: hashes are
 * computed again, and read models, heads and claims made to match.
 */

const SLOW = 300_000;
const ON_POSTGRES = process.env['TEST_ENGINE'] !== 'eventstoredb';

let service: Service;
let store: Client;
let first: { path: string; customerCard: { id: number } };
let second: typeof first;
let original: StoredEvent[];
const key = checkpointKey();
const servers: EventStoreDb[] = [];

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  const { dispatcher, waitForCheckpoint } = await startSigning(service, key);
  first = await enrol(store);
  await store.stamp(first.path);
  await waitForCheckpoint();
  second = await enrol(store);
  for (const stamps of [2, 3, 4]) await store.stamp(first.path, stamps);
  await waitForCheckpoint();
  await dispatcher.kill('SIGTERM');
  original = await service.history();
}, SLOW);
afterAll(async () => {
  await service.stop();
  await Promise.all(servers.map((server) => server.stop()));
}, SLOW);

let engine: NodeJS.ProcessEnv = {};

async function verify(...args: string[]): Promise<{ code: number | null; output: string }> {
  const environment = createTestEnvironment(service.database.url, {
    ...service.environment,
    ...engine,
    CHECKPOINT_KEY: key.settings.CHECKPOINT_KEY,
  });
  const program = startProgram('dist/apps/cli/verify.js', environment, args);
  return { code: await program.exitCode, output: program.output() };
}

/** Replaces the history, as only an operator with bad intentions could, and empties the history table and the statistics. */
async function rewriteHistory(events: StoredEvent[]): Promise<void> {
  await service.database.query(
    `truncate history, statistics_hours, statistics_stores;
     delete from es.positions where subscription = 'history'`,
  );
  if (ON_POSTGRES) {
    const { query } = service.database;
    await query('alter table es.events disable trigger events_are_final');
    await query('truncate es.events');
    await query('alter table es.events enable always trigger events_are_final');
  } else {
    const server = await startEventStoreDb();
    servers.push(server);
    // Otherwise no process would start: subscriptions have read further than this history goes.
    await service.database.query('update es.positions set position = $1', [
      formatPosition(BEGINNING),
    ]);
    engine = { EVENT_STORE_URL: server.connectionString };
  }
  const config = testConfig(service.database.url, { ...service.environment, ...engine });
  const otherStore = await openStore(config);
  try {
    if ('claimForOurs' in otherStore.store) await otherStore.store.claimForOurs();
    const heads = new Map<string, { revision: number; hash: string }>();
    for (const { stream, id, type, version, data, meta } of events) {
      const [head] = await otherStore.store.commit({
        accountId: meta.accountId,
        writes: [
          {
            stream,
            expected: heads.get(stream) ?? null,
            events: [{ id, type, version, data, meta }],
          },
        ],
      });
      if (head) heads.set(stream, head);
    }
  } finally {
    await otherStore.close();
  }
}

const getFirstStream = () => `customer_card-${first.customerCard.id}`;
const getSecondStream = () => `customer_card-${second.customerCard.id}`;

/** Removes events from the history. */
const removeEvents = (matches: (event: StoredEvent) => boolean) =>
  original.filter((event) => !matches(event));

it(
  'inkpad verify --checkpoints accepts an unchanged history, also after it was copied event by event',
  async () => {
    const success = {
      code: 0,
      output: expect.stringContaining(
        `checkpoints of shop.example/inkpad: the first ${original.length} events are there, unchanged and in place`,
      ),
    };
    expect(await verify('--checkpoints', key.dir)).toEqual(success);
    expect(await verify('--checkpoints', key.dir, '--key', key.verifier)).toEqual(success);
    await rewriteHistory(original);
    expect(await verify('--checkpoints', key.dir)).toEqual(success);
  },
  SLOW,
);

describe('inkpad verify --checkpoints reports', () => {
  const cases: Record<string, [() => StoredEvent[], () => string | RegExp]> = {
    'a rewritten event': [
      () =>
        original.map((event) =>
          event.stream === getFirstStream() && event.type === 'StampsEarned' && event.revision > 1
            ? { ...event, data: { ...event.data, stamps: 1 } as JsonObject }
            : event,
        ),
      () =>
        new RegExp(
          `are not those that it covers, although the first \\d+ are: number \\d+ was another, where ${getFirstStream()} revision 2 is now`,
        ),
    ],
    'missing events at the end': [
      () => original.slice(0, -2),
      () =>
        `covers ${original.length} events, and the history has only ${original.length - 2}: events are missing`,
    ],
    'a removed stream': [
      () => removeEvents(({ stream }) => stream === getSecondStream()),
      () => 'events are missing',
    ],
    'an inserted stream': [
      () => {
        const at = original.findIndex(({ stream }) => stream === getFirstStream());
        const inserted = original
          .filter(({ stream }) => stream === 'card-1')
          .map((event, i) => ({
            ...event,
            stream: 'card-4711',
            id: `00000000-0000-7000-8000-00000000000${i}`,
          }));
        return original.toSpliced(at, 0, ...inserted);
      },
      () => /number \d+ was another, where card-4711 revision 0 is now/,
    ],
    'a changed order': [
      () => {
        const otherEvents = removeEvents(({ stream }) => stream === getSecondStream());
        return [...otherEvents, ...original.filter(({ stream }) => stream === getSecondStream())];
      },
      () => /are not those that it covers, although the first \d+ are: number \d+ was another/,
    ],
  };

  it.each(Object.entries(cases))(
    '%s',
    async (_, [createHistory, sentence]) => {
      await rewriteHistory(createHistory());
      await verify('--repair');
      const { output, code } = await verify('--checkpoints', key.dir);
      expect(output).toMatch(sentence());
      expect(code).toBe(1);
    },
    SLOW,
  );

  it(
    'a rewritten event without its place when the tree is missing',
    async () => {
      const { query } = service.database;
      await rewriteHistory(
        original.map((event, i) => (i === original.length - 1 ? { ...event, version: 9 } : event)),
      );
      await query('create table kept as select * from transparency_tiles');
      await query('truncate transparency_tiles');
      const { output, code } = await verify('--checkpoints', key.dir);
      await query('insert into transparency_tiles select * from kept; drop table kept');
      expect(output).toMatch(/are not those that it covers, although the first \d+ are$/m);
      expect(code).toBe(1);
    },
    SLOW,
  );

  it(
    'a checkpoint that was changed, renamed or signed by another key, and still checks the others',
    async () => {
      await rewriteHistory(original);
      const dir = mkdtempSync(join(tmpdir(), 'inkpad-checkpoints-'));
      cpSync(key.dir, dir, { recursive: true });
      const [one = '', two = ''] = key.files();
      renameSync(join(dir, one), join(dir, '0000000000009999.checkpoint'));
      const result = await verify('--checkpoints', dir);
      expect(result.output).toContain(
        '0000000000009999.checkpoint is not a checkpoint that the key',
      );
      expect(result.output).toContain(`the first ${original.length} events are there`);
      expect(result.code).toBe(1);
      appendFileSync(join(dir, two), 'x');
      expect((await verify('--checkpoints', dir)).output).toContain(`${two} is not a checkpoint`);
      const otherOutcome = await verify(
        '--checkpoints',
        key.dir,
        '--key',
        checkpointKey('x').verifier,
      );
      expect(otherOutcome.output).toContain('is not a checkpoint that the key x has signed');
    },
    SLOW,
  );
});

describe('inkpad verify', () => {
  it.each([
    [['--checkpoints', '/no/such/folder'], 1, 'there is no folder /no/such/folder'],
    [['--checkpoints', tmpdir()], 1, 'there are no checkpoints in'],
    [['--checkpoints', tmpdir(), '--key', 'abc'], 1, 'must be a verifier key'],
    [['--key', 'abc'], 2, 'error: --key needs --checkpoints'],
    [
      ['--checkpoint', 'x'],
      2,
      "error: unknown option '--checkpoint' (Did you mean --checkpoints?)",
    ],
  ])(
    'explains what is wrong with the arguments %j, and exits with %i',
    async (args, status, sentence) => {
      const { output, code } = await verify(...args);
      expect(output).toContain(sentence);
      expect(code).toBe(status);
    },
    SLOW,
  );
});
