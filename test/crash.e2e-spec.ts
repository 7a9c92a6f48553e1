import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres, type EmbeddedPostgres } from '../scripts/embedded-postgres.mjs';
import { testEnvironment } from './support/database.js';
import { eventually } from './support/eventually.js';
import { startProgram, type Program } from './support/program.js';
import { isSigned, Receiver } from './support/receiver.js';
import { Client } from './support/service.js';
import { enrol } from './support/story.js';

const API = 'dist/apps/api/src/main.js';
const DISPATCHER = 'dist/apps/dispatcher/src/main.js';
const CARDS = 6;
const SLOW = 120_000;

/** A service of its own on a PostgreSQL of its own, with fsync on, since this is about what survives. */
let dataDir: string;
let postgres: EmbeddedPostgres;
let environment: NodeJS.ProcessEnv;
let api: Program;
let dispatcher: Program;
let receiver: Receiver;
let store: Client;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'inkpad-crash-'));
  postgres = await startPostgres({ dataDir, tie: true });
  const port = await freePort();
  environment = testEnvironment(postgres.url, {
    PORT: String(port),
    LOG_LEVEL: 'fatal',
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    WEBHOOK_TIME_SCALE: '20',
  });
  run('migrate');
  const { api_token, account_id } = JSON.parse(run('setup')) as {
    api_token: string;
    account_id: number;
  };
  store = new Client(`http://127.0.0.1:${port}`, account_id, api_token);
  api = startProgram(API, environment);
  dispatcher = startProgram(DISPATCHER, environment);
  await untilAnswering();
  receiver = await Receiver.start();
}, SLOW);

afterAll(async () => {
  await Promise.all([api.kill('SIGTERM'), dispatcher.kill('SIGTERM')]);
  await receiver.stop();
  await postgres.remove();
}, SLOW);

describe('kill -9 in the middle of a stream of stamps', () => {
  it.each([
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
          30_000,
        );
      },
    ],
  ])(
    '%s: what was answered is there once, and every event is sent',
    async (_victim, killAndRestart) => {
      const subscription = await store.post<{ id: number; secret: string }>(
        `${store.store}/webhook_subscriptions`,
        { events: ['stamp.earned'], target_url: receiver.url },
      );
      const cards: string[] = [];
      for (let i = 0; i < CARDS; i++) cards.push((await enrol(store)).path);

      const answered: string[] = [];
      const sent: string[] = [];
      let stamping = true;
      const tills = cards.map(async (path, till) => {
        for (let n = 0; stamping; n++) {
          const requestId = `${subscription.body.id}-${till}-${n}`;
          sent.push(requestId);
          const status = await stampOnce(path, requestId);
          expect([200, 503, 'no answer']).toContain(status);
          if (status === 200) answered.push(requestId);
        }
      });
      for (let round = 0; round < 2; round++) {
        const before = answered.length;
        await eventually(
          () => answered.length,
          (count) => count > before + 100,
        );
        await killAndRestart();
        await untilAnswering();
      }
      const before = answered.length;
      await eventually(
        () => answered.length,
        (count) => count > before + 100,
      );
      stamping = false;
      await Promise.all(tills);

      const recorded = await requestIdsOf(sent);
      expect(recorded.length).toBe(new Set(recorded).size);
      expect(answered.filter((id) => !recorded.includes(id))).toEqual([]);
      expect(run('verify')).toContain('every row is the fold of its stream');

      const mine = () =>
        receiver.received.filter((webhook) => isSigned(webhook, subscription.body.secret));
      await eventually(
        () => new Set(mine().map((webhook) => webhook.headers['webhook-id'])).size,
        (count) => count === recorded.length,
        60_000,
      );
      const bodies = new Map<unknown, string>();
      for (const { headers, text } of mine()) {
        const id = headers['webhook-id'];
        expect(bodies.get(id) ?? text).toBe(text);
        bodies.set(id, text);
      }
      await store.send('DELETE', `${store.store}/webhook_subscriptions/${subscription.body.id}`);
    },
    SLOW,
  );

  it('a connection lost in the middle of a commit: the stamp counts once and is answered', async () => {
    const { path, customerCard } = await enrol(store);
    const blocker = new pg.Client(postgres.url);
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('select 1 from es.streams where stream_id = $1 for update', [
      `customer_card-${customerCard.id}`,
    ]);
    const stamped = store.post<{ stamps_count: number }>(`${path}/stamp`, { stamps: 1 });
    const watcher = new pg.Client(postgres.url);
    await watcher.connect();
    await eventually(
      () =>
        watcher.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where query like '%es.commit%' and wait_event_type = 'Lock'`,
        ),
      (killed) => (killed.rowCount ?? 0) > 0,
    );
    await blocker.query('rollback');
    const { status, body } = await stamped;
    expect([status, body.stamps_count]).toEqual([200, 1]);
    const shown = await store.get<{ stamps_count: number }>(path);
    expect(shown.body.stamps_count).toBe(1);
    await blocker.end();
    await watcher.end();
  });
});

async function stampOnce(path: string, requestId: string): Promise<number | 'no answer'> {
  try {
    const answer = await store.send(
      'POST',
      `${path}/stamp`,
      { stamps: 1 },
      { 'x-request-id': requestId },
    );
    return answer.status;
  } catch {
    // The process is gone: nobody can say from outside what became of this stamp.
    await untilAnswering();
    return 'no answer';
  }
}

async function untilAnswering(): Promise<void> {
  await eventually(
    () =>
      store.get('/api/v1/accounts').then(
        (answer) => answer.status,
        (error: unknown) => String(error),
      ),
    (status) => status === 200,
    30_000,
  );
}

async function requestIdsOf(sent: string[]): Promise<string[]> {
  const client = new pg.Client(postgres.url);
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string }>(
      `select meta ->> 'requestId' as id from es.events
       where type = 'StampsEarned' and meta ->> 'requestId' = any ($1)`,
      [sent],
    );
    return rows.map((row) => row.id);
  } finally {
    await client.end();
  }
}

function run(script: 'migrate' | 'setup' | 'verify'): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`dist/scripts/${script}.js`], {
    env: { PATH: process.env['PATH'], ...environment },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
