import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { appendFileSync, cpSync, mkdtempSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BEGINNING, type JsonObject, type StoredEvent } from '#event-store/port/event-store.js';
import { formatPosition } from '#event-store/port/position.js';
import { checkpointKey, startSigning } from '../support/fixtures/checkpoints.js';
import { testConfig, testEnvironment } from '../support/database/database.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

/**
 * `npm run verify -- --checkpoints` against an operator who rewrites the history and covers it up: hashes are computed
 * anew, and rows, heads and claims made to fit.
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
  const { dispatcher, signed } = await startSigning(service, key);
  first = await enrol(store);
  await store.post(`${first.path}/stamp`, { stamps: 1 });
  await signed();
  second = await enrol(store);
  for (const stamps of [2, 3, 4]) await store.post(`${first.path}/stamp`, { stamps });
  await signed();
  await dispatcher.kill('SIGTERM');
  original = await service.history();
}, SLOW);
afterAll(async () => {
  await service.stop();
  await Promise.all(servers.map((server) => server.stop()));
}, SLOW);

let engine: NodeJS.ProcessEnv = {};

async function verify(...args: string[]): Promise<{ code: number | null; output: string }> {
  const environment = testEnvironment(service.database.url, {
    ...service.environment,
    ...engine,
    CHECKPOINT_KEY: key.settings.CHECKPOINT_KEY,
  });
  const program = startProgram('dist/scripts/verify.js', environment, args);
  return { code: await program.exitCode, output: program.output() };
}

/** The history becomes another one, as nobody with honest means could make it, and its table is yet to be filled. */
async function rewriteAs(events: StoredEvent[]): Promise<void> {
  await service.database.query(
    `truncate history; delete from es.checkpoints where subscription = 'history'`,
  );
  if (ON_POSTGRES) {
    const { query } = service.database;
    await query('alter table es.events disable trigger events_are_final');
    await query('truncate es.events, es.streams');
    await query('alter table es.events enable always trigger events_are_final');
  } else {
    const server = await startEventStoreDb();
    servers.push(server);
    // Otherwise no process would start: those that have read further would notice.
    await service.database.query('update es.checkpoints set position = $1', [
      formatPosition(BEGINNING),
    ]);
    engine = { EVENT_STORE_URL: server.connectionString };
  }
  const config = testConfig(service.database.url, { ...service.environment, ...engine });
  const other = await openStore(config);
  try {
    if ('claimForOurs' in other.store) await other.store.claimForOurs();
    const heads = new Map<string, { revision: number; hash: string }>();
    for (const { stream, id, type, version, data, meta } of events) {
      const [head] = await other.store.commit({
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
    await other.close();
  }
}

const firstCard = () => `customer_card-${first.customerCard.id}`;
const secondCard = () => `customer_card-${second.customerCard.id}`;

/** Of one stream, as what comes before or after them allows. */
const without = (fits: (event: StoredEvent) => boolean) => original.filter((event) => !fits(event));

it(
  'a history that nobody has touched is proven, also when it was written anew event by event',
  async () => {
    const proven = {
      code: 0,
      output: expect.stringContaining(
        `checkpoints of shop.example/inkpad: the first ${original.length} events are there, unchanged and in place`,
      ),
    };
    expect(await verify('--checkpoints', key.dir)).toEqual(proven);
    expect(await verify('--checkpoints', key.dir, '--key', key.verifier)).toEqual(proven);
    await rewriteAs(original);
    expect(await verify('--checkpoints', key.dir)).toEqual(proven);
  },
  SLOW,
);

describe('noticed is', () => {
  const cases: Record<string, [() => StoredEvent[], () => string | RegExp]> = {
    'an event that was rewritten': [
      () =>
        original.map((event) =>
          event.stream === firstCard() && event.type === 'StampsEarned' && event.revision > 1
            ? { ...event, data: { ...event.data, stamps: 1 } as JsonObject }
            : event,
        ),
      () =>
        new RegExp(
          `are not those that it covers, although the first \\d+ are: number \\d+ was another, where ${firstCard()} revision 2 is now`,
        ),
    ],
    'a tail that was cut off': [
      () => original.slice(0, -2),
      () =>
        `covers ${original.length} events, and the history has only ${original.length - 2}: events are missing`,
    ],
    'a whole stream that was removed': [
      () => without(({ stream }) => stream === secondCard()),
      () => 'events are missing',
    ],
    'a whole stream that was inserted': [
      () => {
        const at = original.findIndex(({ stream }) => stream === firstCard());
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
    'an order that was changed': [
      () => {
        const moved = without(({ stream }) => stream === secondCard());
        return [...moved, ...original.filter(({ stream }) => stream === secondCard())];
      },
      () => /are not those that it covers, although the first \d+ are: number \d+ was another/,
    ],
  };

  it.each(Object.entries(cases))(
    '%s',
    async (_, [rewritten, sentence]) => {
      await rewriteAs(rewritten());
      await verify('--repair');
      const { output, code } = await verify('--checkpoints', key.dir);
      expect(output).toMatch(sentence());
      expect(code).toBe(1);
    },
    SLOW,
  );

  it(
    'also without the tree in the database, which then does not say where',
    async () => {
      const { query } = service.database;
      await rewriteAs(
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
    'a checkpoint that was changed, renamed or signed by another, while the others are compared',
    async () => {
      await rewriteAs(original);
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
      const other = await verify('--checkpoints', key.dir, '--key', checkpointKey('x').verifier);
      expect(other.output).toContain('is not a checkpoint that the key x has signed');
    },
    SLOW,
  );
});

describe('it says how it is used', () => {
  it.each([
    [['--checkpoints', '/no/such/folder'], 'there is no folder /no/such/folder'],
    [['--checkpoints', tmpdir()], 'there are no checkpoints in'],
    [['--checkpoints', tmpdir(), '--key', 'abc'], 'must be a verifier key'],
    [['--key', 'abc'], 'Usage: npm run verify'],
    [['--checkpoint', 'x'], 'Usage: npm run verify'],
  ])(
    'with %j',
    async (args, sentence) => {
      const { output, code } = await verify(...args);
      expect(output).toContain(sentence);
      expect(code).toBe(1);
    },
    SLOW,
  );
});
