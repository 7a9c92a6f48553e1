import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/emulators/eventstoredb/as-process.mjs';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { isSigned, Receiver } from '../support/emulators/webhook-receiver.js';
import { Client } from '../support/services/service.js';
import { readHistory } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const API = 'dist/apps/api/main.js';
const DISPATCHER = 'dist/apps/dispatcher/main.js';
const CARDS = 6;
const SLOW = 300_000;
/** Whether EventStoreDB is the emulator. These tests may not kill a real server. */
const OWN_EVENTSTOREDB =
  process.env['TEST_ENGINE'] === 'eventstoredb' && !process.env['EVENT_STORE_URL'];

/** The data of a PostgreSQL that only these tests use. Its fsync is on, because they test what survives a crash. */
let dataDir: string;
let postgres: EmbeddedPostgres;
let environment: NodeJS.ProcessEnv;
let api: Program;
let dispatcher: Program;
let receiver: Receiver;
let store: Client;
/** The emulator as a process that can be killed, when the events are in EventStoreDB. */
let eventStoreDb: EventStoreDbProcess | undefined;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'inkpad-crash-'));
  postgres = await startPostgres({ dataDir, tie: true });
  const port = await findFreePort();
  if (OWN_EVENTSTOREDB) eventStoreDb = await startEventStoreDb();
  environment = createTestEnvironment(postgres.url, {
    DATABASE_MIGRATION_URL: postgres.ownerUrl,
    PORT: String(port),
    LOG_LEVEL: 'fatal',
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    WEBHOOK_TIME_SCALE: '20',
    ...(eventStoreDb && { EVENT_STORE_URL: eventStoreDb.connectionString }),
  });
  run('migrate');
  const { api_token, account_id } = JSON.parse(run('setup')) as {
    api_token: string;
    account_id: number;
  };
  store = new Client(`http://127.0.0.1:${port}`, account_id, api_token);
  api = startProgram(API, environment);
  dispatcher = startProgram(DISPATCHER, environment);
  await waitUntilReady();
  receiver = await Receiver.start();
}, SLOW);

afterAll(async () => {
  await Promise.all([api.kill('SIGTERM'), dispatcher.kill('SIGTERM')]);
  await receiver.stop();
  await eventStoreDb?.kill();
  await postgres.remove();
}, SLOW);

describe('many concurrent stamps', () => {
  const victims: [string, () => Promise<void>][] = [
    [
      'the api',
      async () => {
        await api.kill('SIGKILL');
        api = startProgram(API, environment);
      },
    ],
    [
      'the dispatcher',
      async () => {
        await dispatcher.kill('SIGKILL');
        dispatcher = startProgram(DISPATCHER, environment);
      },
    ],
    [
      'PostgreSQL',
      async () => {
        process.kill(postgres.pid, 'SIGKILL');
        await postgres.exited;
        await eventually(
          async () => {
            try {
              postgres = await startPostgres({ dataDir, tie: true });
              return 'running';
            } catch (error) {
              return String(error);
            }
          },
          (state) => state === 'running',
        );
      },
    ],
  ];
  if (OWN_EVENTSTOREDB) {
    victims.push([
      'EventStoreDB',
      async () => {
        const port = eventStoreDb?.port;
        await eventStoreDb?.kill('SIGKILL');
        eventStoreDb = await startEventStoreDb(port);
      },
    ]);
  }

  it.each(victims)(
    'that were confirmed are stored once, and every event is sent, when %s gets a kill -9',
    async (_victim, killAndRestart) => {
      const subscription = await store.post<{ id: number; secret: string }>(
        `${store.store}/webhook_subscriptions`,
        { events: ['stamp.earned'], target_url: receiver.url },
      );
      const cards: string[] = [];
      for (let i = 0; i < CARDS; i++) cards.push((await enrol(store)).path);

      const confirmedIds: string[] = [];
      const refusedIds: string[] = [];
      const requestIds: string[] = [];
      let isStamping = true;
      const tills = cards.map(async (path, till) => {
        for (let n = 0; isStamping; n++) {
          const requestId = `${subscription.body.id}-${till}-${n}`;
          requestIds.push(requestId);
          // Every second till repeats a request without a response, with the same key.
          const hasKey = till % 2 === 1;
          const status = hasKey
            ? await stampUntilConfirmed(path, requestId)
            : await stampOnce(path, requestId);
          expect([200, 503, 'no response']).toContain(status);
          if (status === 200) confirmedIds.push(requestId);
          if (status === 503) refusedIds.push(requestId);
        }
      });
      for (let round = 0; round < 2; round++) {
        const before = confirmedIds.length;
        await eventually(
          () => confirmedIds.length,
          (count) => count > before + 100,
        );
        await killAndRestart();
        await waitUntilReady();
        await endLeases();
      }
      const before = confirmedIds.length;
      await eventually(
        () => confirmedIds.length,
        (count) => count > before + 100,
      );
      isStamping = false;
      await Promise.all(tills);

      const storedIds = await findStoredIds(requestIds);
      expect(storedIds.length).toBe(new Set(storedIds).size);
      expect(confirmedIds.filter((id) => !storedIds.includes(id))).toEqual([]);
      expect(refusedIds.filter((id) => storedIds.includes(id))).toEqual([]);
      expect(run('verify')).toContain('every read model matches its events');

      const listOwnWebhooks = () =>
        receiver.received.filter((webhook) => isSigned(webhook, subscription.body.secret));
      await eventually(
        () => new Set(listOwnWebhooks().map((webhook) => webhook.headers['webhook-id'])).size,
        (count) => count === storedIds.length,
      );
      const bodies = new Map<unknown, string>();
      for (const { headers, text } of listOwnWebhooks()) {
        const id = headers['webhook-id'];
        expect(bodies.get(id) ?? text).toBe(text);
        bodies.set(id, text);
      }
      await store.send('DELETE', `${store.store}/webhook_subscriptions/${subscription.body.id}`);
    },
    SLOW,
  );

  it(
    'that the api has accepted are all confirmed when SIGTERM stops it',
    async () => {
      const { path } = await enrol(store);
      let confirmedCount = 0;
      const tills = Array.from({ length: 16 }, async () => {
        for (;;) {
          const status = await store.stamp(path).then(
            (response) => response.status,
            () => 'no connection',
          );
          if (status !== 200) return status;
          confirmedCount++;
        }
      });
      await eventually(
        () => confirmedCount,
        (count) => count > 100,
      );
      await api.kill('SIGTERM');
      expect(new Set(await Promise.all(tills))).toEqual(new Set(['no connection']));
      api = startProgram(API, environment);
      await waitUntilReady();
      const customerCard = await store.get<{ stamps_count: number }>(path);
      expect(customerCard.body.stamps_count).toBe(confirmedCount);
    },
    SLOW,
  );
});

describe('many concurrent changes of cards', () => {
  // The stored event is the change: a process that is killed after the commit loses no webhook, and one that is killed
  // before it sends none.
  it(
    'send every stored change once and in order, and nothing else, when api and dispatcher get a kill -9',
    async () => {
      const cards = await Promise.all(
        Array.from({ length: CARDS }, async (_, i) => {
          const card = { name: `Card ${i}` };
          return (await store.post<{ id: number }>(`${store.store}/cards`, { card })).body.id;
        }),
      );
      const { body: subscription } = await store.post<{ id: number; secret: string }>(
        `${store.store}/webhook_subscriptions`,
        { events: ['card.updated'], target_url: receiver.url },
      );
      const confirmedNames: string[] = [];
      let isChanging = true;
      const owners = cards.map(async (id) => {
        for (let n = 0; isChanging; n++) {
          const name = `Card ${id}-${n}`;
          const status = await store
            .send('PATCH', `${store.store}/cards/${id}`, { card: { name } })
            .then(
              (response) => response.status,
              () => 'no response' as const,
            );
          expect([200, 503, 'no response']).toContain(status);
          if (status === 200) confirmedNames.push(name);
          else await waitUntilReady();
        }
      });
      const untilMore = () => {
        const before = confirmedNames.length;
        return eventually(
          () => confirmedNames.length,
          (count) => count > before + 60,
        );
      };
      await untilMore();
      await api.kill('SIGKILL');
      api = startProgram(API, environment);
      await waitUntilReady();
      await endLeases();
      await untilMore();
      await dispatcher.kill('SIGKILL');
      dispatcher = startProgram(DISPATCHER, environment);
      await untilMore();
      isChanging = false;
      await Promise.all(owners);

      const stored = (await readHistory(environment)).filter(
        ({ type, stream }) => type === 'CardUpdated' && cards.some((id) => stream === `card-${id}`),
      );
      const storedNames = stored.map(({ data }) => (data as { name: string }).name);
      expect(confirmedNames.filter((name) => !storedNames.includes(name))).toEqual([]);
      const listSent = () =>
        receiver.events.filter((webhook) => isSigned(webhook, subscription.secret));
      await eventually(
        () => listSent().length,
        (count) => count >= storedNames.length,
      );
      const getName = ({ body }: { body: Record<string, unknown> }) =>
        (body['data'] as { name: string }).name;
      expect(listSent().map(getName).sort()).toEqual([...storedNames].sort());
      for (const id of cards) {
        const own = listSent().filter(({ body }) => (body['data'] as { id: number }).id === id);
        const sequences = own.map(({ body }) => Number(body['sequence']));
        expect(sequences).toEqual(sequences.map((_, i) => i + 1));
      }
      await store.send('DELETE', `${store.store}/webhook_subscriptions/${subscription.id}`);
    },
    SLOW,
  );
});

/** Starts the emulator with its log in a file, so that confirmed events survive a kill. */
function startEventStoreDb(port = 0): Promise<EventStoreDbProcess> {
  const log = join(dataDir, 'eventstoredb.log');
  return startEventStoreDbProcess(['--port', String(port), '--log', log, '--delays']);
}

/** Expires the leases of dead processes at once, instead of after a minute. */
async function endLeases(): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  await client.query('update es.intents set leased_until = now()');
  await client.query('update es.stored_responses set leased_until = now() where status is null');
  await client.end();
}

function stampUntilConfirmed(path: string, key: string): Promise<number | 'no response'> {
  return eventually(
    () => stampOnce(path, key, { 'idempotency-key': key }),
    (status) => {
      expect([200, 409, 503, 'no response']).toContain(status);
      return status === 200;
    },
  );
}

async function stampOnce(
  path: string,
  requestId: string,
  headers: Record<string, string> = {},
): Promise<number | 'no response'> {
  try {
    const response = await store.send(
      'POST',
      `${path}/stamp`,
      { stamps: 1 },
      { 'x-request-id': requestId, ...headers },
    );
    return response.status;
  } catch {
    // The process is gone: the client cannot know whether the stamp was stored.
    await waitUntilReady();
    return 'no response';
  }
}

async function waitUntilReady(): Promise<void> {
  await eventually(
    () =>
      store.get('/api/v1/accounts').then(
        (response) => response.status,
        (error: unknown) => String(error),
      ),
    (status) => status === 200,
  );
}

async function findStoredIds(requestIds: string[]): Promise<string[]> {
  const expected = new Set(requestIds);
  return (await readHistory(environment))
    .filter(({ type, meta }) => type === 'StampsEarned' && expected.has(meta.requestId))
    .map(({ meta }) => meta.requestId);
}

function run(script: 'migrate' | 'setup' | 'verify'): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`dist/apps/cli/${script}.js`], {
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...environment },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}
