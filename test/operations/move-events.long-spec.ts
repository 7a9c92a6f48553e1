import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { readConfig } from '#configuration/config.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import { customerCard } from '#loyalty/stamping/customer-card.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import {
  findFreePort,
  startProgram,
  withoutPlace,
  type Program,
} from '../support/services/program.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { Client } from '../support/services/service.js';
import { readHistory, openStore } from '../support/database/event-store.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
const CLEAN = 'every read model matches its events; every hash, head and claim is correct';
const DIFFERENT = 'The two histories differ';

let server: EventStoreDb;
let database: TestDatabase;
let receiver: Receiver;
let store: Client;
/** The customer card that is stamped with each engine. */
let path: string;
let postgresSettings: NodeJS.ProcessEnv;
let eventStoreDbSettings: NodeJS.ProcessEnv;
const programs = new Map<string, Program>();

beforeAll(async () => {
  server = await startEventStoreDb();
  database = await createTestDatabase();
  receiver = await Receiver.start();
  const port = await findFreePort();
  postgresSettings = createTestEnvironment(database.url, {
    PORT: String(port),
    EVENT_STORE_URL: '',
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    WEBHOOK_TIME_SCALE: '100',
  });
  eventStoreDbSettings = {
    ...postgresSettings,
    EVENT_STORE_URL: server.connectionString,
    EVENT_STORE_STREAM_PREFIX: 'moved_',
  };
  const { output } = await run('setup', postgresSettings);
  const { api_token, account_id } = JSON.parse(output) as {
    api_token: string;
    account_id: number;
  };
  store = new Client(`http://127.0.0.1:${port}`, account_id, api_token);
}, SLOW);

afterAll(async () => {
  await stop();
  await receiver.stop();
  await server.stop();
  await database.close();
}, SLOW);

describe('inkpad move-events', () => {
  it(
    'refuses an EventStoreDB that holds the history of another database',
    async () => {
      const occupied = { ...eventStoreDbSettings, EVENT_STORE_STREAM_PREFIX: 'taken_' };
      const otherDatabase = await createTestDatabase();
      expect((await run('setup', { ...occupied, DATABASE_URL: otherDatabase.url })).status).toBe(0);
      const { status, output } = await run('move-events', occupied, '--to', 'eventstoredb');
      expect(status).toBe(1);
      expect(output.trim()).toMatch(
        /^KurrentDB \(streams taken_\*\) holds the history of another database: .*$/,
      );
      await otherDatabase.close();
    },
    SLOW,
  );

  it(
    'refuses to run beside an api, and copies every event to EventStoreDB although it was killed once',
    async () => {
      await start('api', postgresSettings);
      const { status } = await store.post(`${store.store}/webhook_subscriptions`, {
        events: ['stamp.earned'],
        target_url: receiver.url,
      });
      expect(status).toBe(201);
      for (let i = 0; i < 10; i++) ({ path } = await enrol(store, { rewards: [5] }));
      await stamp(store, path, 3);
      await start('dispatcher', postgresSettings);
      await waitForWebhooks(3);
      const failure = await run('move-events', eventStoreDbSettings, '--to', 'eventstoredb');
      expect(failure.status).toBe(1);
      expect(failure.output).toContain('Inkpad is still connected to the database (inkpad api');
      await stop('dispatcher');
      await stamp(store, path, 2);
      await stop();

      const before = await readHistory(postgresSettings);
      // Only the first append has been sent until its response comes.
      const release = server.fault.holdResponses('append');
      const killed = startMove('eventstoredb');
      const exit = once(killed, 'exit');
      await eventually(
        () => server.appended,
        (appended) => appended > 1,
      );
      killed.kill('SIGKILL');
      await exit;
      server.fault.clear();
      release();
      expect(server.appended).toBeLessThan(before.length);

      expect(await run('move-events', eventStoreDbSettings, '--to', 'eventstoredb')).toMatchObject({
        status: 0,
        output: expect.stringContaining(`eventstoredb holds all ${before.length} events`),
      });
      const moved = await readHistory(eventStoreDbSettings);
      expect(moved.map(omitPosition)).toEqual(before.map(omitPosition));
      const end = moved.at(-1)?.position;
      expect(await readPositions()).toContainEqual({
        name: 'read_models',
        position: end && formatPosition(end),
      });
      expect(await checkHistoryTable(eventStoreDbSettings)).toBeGreaterThan(3);
      const verification = await run('verify', eventStoreDbSettings);
      expect(verification.output).toContain(CLEAN);
      expect(verification.status).toBe(0);
    },
    SLOW,
  );

  it('copies nothing and changes no position when it is run again', async () => {
    const positions = await readPositions();
    const again = await run('move-events', eventStoreDbSettings, '--to', 'eventstoredb');
    expect([again.status, again.output]).toEqual([0, expect.stringContaining(' 0 of them copied')]);
    expect(await readPositions()).toEqual(positions);
  });

  it('makes inkpad verify refuse PostgreSQL as the event store afterwards', async () => {
    const { status, output } = await run('verify', postgresSettings);
    expect(status).toBe(1);
    expect(output.trim()).toMatch(
      /^The history of this database is in KurrentDB \(EventStoreDB\): .*$/,
    );
  });

  it(
    'lets the service continue with EventStoreDB and send every webhook once',
    async () => {
      await start('api', eventStoreDbSettings);
      await start('dispatcher', eventStoreDbSettings);
      await stamp(store, path, 2);
      expect(await readBalance()).toBe(7);
      await waitForWebhooks(7);
      await waitForHistoryTable(eventStoreDbSettings);
      await stop();
      expect((await run('verify', eventStoreDbSettings)).status).toBe(0);
    },
    SLOW,
  );

  it(
    'copies the newer events back to PostgreSQL, and brings read models up to date that are behind',
    async () => {
      const before = await readHistory(eventStoreDbSettings);
      await leaveReadModelsBehind();
      const stale = await run('move-events', eventStoreDbSettings, '--to', 'eventstoredb');
      expect([stale.status, stale.output]).toEqual([1, expect.stringContaining(DIFFERENT)]);
      const back = await run('move-events', eventStoreDbSettings, '--to', 'postgres');
      expect([back.status, back.output]).toEqual([
        0,
        expect.stringMatching(`postgres holds all ${before.length} events .* 2 of them copied`),
      ]);
      expect((await readHistory(postgresSettings)).map(omitPosition)).toEqual(
        before.map(omitPosition),
      );
      expect(await checkHistoryTable(postgresSettings)).toBe(before.length);
      const verification = await run('verify', postgresSettings);
      expect(verification.output).toContain(CLEAN);
      expect(verification.status).toBe(0);

      await start('api', postgresSettings);
      await start('dispatcher', postgresSettings);
      await stamp(store, path, 2);
      expect(await readBalance()).toBe(9);
      await waitForWebhooks(9);
      await waitForHistoryTable(postgresSettings);
      await stop();
    },
    SLOW,
  );
});

/** Simulates a process that died after its appends: one read model is a revision behind, another is missing. */
async function leaveReadModelsBehind(): Promise<void> {
  const { rows: cards, close } = await openStore(readConfig(eventStoreDbSettings));
  const id = Number(path.split('/').at(-1));
  const stream = toStreamName(customerCard, id);
  const now = await cards.project(customerCard, stream);
  const before = await cards.project(customerCard, stream, {
    to: (now?.head.revision ?? 0) - 1,
  });
  await close();
  const behind = await database.query(
    `update customer_cards set revision = $2, hash = decode($3, 'hex'), state = $4
     where id = $1 and revision = $2 + 1`,
    [id, before?.head.revision, before?.head.hash, before?.state],
  );
  const missing = await database.query(
    `delete from customer_cards where id = (select min(id) from customer_cards where id <> $1)`,
    [id],
  );
  expect([behind.rowCount, missing.rowCount]).toEqual([1, 1]);
}

async function readBalance(): Promise<number> {
  return await store.readBalance(path);
}

/** Waits until so many webhooks were received, each once, and none is pending. */
async function waitForWebhooks(count: number): Promise<void> {
  const state = await eventually(
    async () => ({
      received: receiver.received.length,
      delivered: (
        await database.query(`select 1 from webhook_deliveries where status = 'delivered'`)
      ).rowCount,
    }),
    ({ received, delivered }) => received >= count && delivered !== null && delivered >= count,
  );
  expect(state).toEqual({ received: count, delivered: count });
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(count);
}

const omitPosition = ({ position: _position, ...event }: StoredEvent) => event;

/** Compares the history table with the log. @returns how many events the table has */
async function checkHistoryTable(environment: NodeJS.ProcessEnv): Promise<number> {
  const { rows } = await database.query('select event_id, position from history order by seq');
  const events = (await readHistory(environment)).slice(0, rows.length);
  expect(rows).toEqual(
    events.map(({ id, position }) => ({ event_id: id, position: formatPosition(position) })),
  );
  return rows.length;
}

async function waitForHistoryTable(environment: NodeJS.ProcessEnv): Promise<void> {
  const { length } = await readHistory(environment);
  await eventually(
    () => checkHistoryTable(environment),
    (count) => count === length,
  );
}

async function readPositions(): Promise<unknown[]> {
  const { rows } = await database.query(
    `select subscription as name, position from es.positions
     union all select id::text, active_from from webhook_subscriptions order by 1`,
  );
  return rows;
}

async function start(app: 'api' | 'dispatcher', environment: NodeJS.ProcessEnv): Promise<void> {
  const program = startProgram(`dist/apps/${app}/main.js`, environment);
  programs.set(app, program);
  if (app === 'dispatcher') return;
  await eventually(
    () =>
      fetch(`${store.baseUrl}/health`).then(
        ({ status }) => String(status),
        () => program.output(),
      ),
    (state) => /^\d+$/.test(state),
  );
}

/** Stops these programs, or all of them. */
async function stop(...names: string[]): Promise<void> {
  for (const name of names.length > 0 ? names : [...programs.keys()]) {
    await programs.get(name)?.kill('SIGTERM');
    programs.delete(name);
  }
}

const startMove = (to: string) =>
  spawn(process.execPath, ['dist/apps/cli/move-events.js', '--to', to], {
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...eventStoreDbSettings },
    stdio: 'ignore',
  });

/** Runs a script asynchronously, since its EventStoreDB is in this process. */
async function run(
  script: string,
  environment: NodeJS.ProcessEnv,
  ...args: string[]
): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, [`dist/apps/cli/${script}.js`, ...args], {
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  await once(child, 'close');
  return { status: child.exitCode, output: withoutPlace(output) };
}
