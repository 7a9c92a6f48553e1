import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { createTestDatabase, createTestEnvironment } from '../support/database/database.js';
import { readHistory } from '../support/database/event-store.js';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/emulators/eventstoredb/as-process.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import {
  findFreePort,
  startProgram,
  withoutPlace,
  type Program,
} from '../support/services/program.js';
import { Client } from '../support/services/service.js';

const SLOW = 300_000;
const CLEAN = 'every read model matches its events; every hash, head and claim is correct';
const CARDS = 4;

let server: EventStoreDbProcess;
let files: string;
let original: NodeJS.ProcessEnv;
let backup: string;
let port: number;
let store: Client;
let paths: string[];
/** Stamps that were acknowledged before the backup began, by path. */
let acknowledged: Map<string, number>;
const databases: { close: () => Promise<void> }[] = [];
const programs: Program[] = [];

beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), 'inkpad-backup-'));
  backup = join(files, 'backup');
  server = await startEventStoreDbProcess();
  port = await findFreePort();
  original = await createInstallation('original_');
  const { output } = await run('setup', original);
  const { api_token, account_id } = JSON.parse(output) as { api_token: string; account_id: number };
  store = new Client(`http://127.0.0.1:${port}`, account_id, api_token);
  await start(original);
  paths = [];
  for (let i = 0; i < CARDS; i++)
    paths.push((await enrol(store, { card: { stamps_required: 21 }, rewards: [3] })).path);
}, SLOW);

afterAll(async () => {
  await stopAll();
  for (const database of databases) await database.close();
  await server.kill();
  rmSync(files, { recursive: true, force: true });
}, SLOW);

describe('inkpad backup with events in KurrentDB', () => {
  it(
    'backs up a service that stamps, enrols and repeats requests meanwhile',
    async () => {
      const load = new Load();
      await eventually(
        () => load.count,
        (count) => count >= 40,
      );
      acknowledged = new Map(load.stamps);
      expect(await run('backup', original, backup)).toEqual({
        status: 0,
        output: expect.stringContaining('events'),
      });
      const others = await load.stop();
      expect(others).toBeGreaterThan(40);
      await stopAll();
      const manifest = JSON.parse(readFileSync(join(backup, 'manifest.json'), 'utf8')) as {
        engine: string;
        log: { events: number };
      };
      expect(manifest.engine).toBe('eventstoredb');
      expect(manifest.log.events).toBeLessThan((await readHistory(original)).length);
      const verification = await run('verify', original);
      expect([verification.status, verification.output]).toEqual([
        0,
        expect.stringContaining(CLEAN),
      ]);
    },
    SLOW,
  );

  it(
    'restores into PostgreSQL, and the service goes on there',
    async () => {
      const restored = await createInstallation('', '');
      await restore(backup, restored);
      await expectHistoryOfOriginal(restored);
      await expectServiceGoesOn(restored);
    },
    SLOW,
  );

  it(
    'restores into KurrentDB, and the service goes on there',
    async () => {
      const restored = await createInstallation('restored_');
      await restore(backup, restored);
      await expectHistoryOfOriginal(restored);
      await expectServiceGoesOn(restored);
    },
    SLOW,
  );

  it('refuses to restore into KurrentDB under a prefix that has a history', async () => {
    const failure = await run('restore', await createInstallation('original_'), backup);
    expect(failure).toEqual({
      status: 1,
      output: expect.stringContaining(
        'KurrentDB (streams original_*) holds a history already. Restore into an empty server',
      ),
    });
  });

  it(
    'can be repeated after it was killed while events were copied to KurrentDB',
    async () => {
      const restored = await createInstallation('killed_');
      await server.control('delayResponses', 1_500);
      const before = (await server.state()).appended;
      const killed = startProgram('dist/apps/cli/restore.js', restored, [backup]);
      await eventually(
        async () => (await server.state()).appended,
        (appended) => appended > before + 1,
      );
      await killed.kill('SIGKILL');
      await server.control('clear');
      const failure = await run('verify', restored);
      expect(failure).toEqual({
        status: 1,
        output: expect.stringContaining('A restore into this database was not finished'),
      });
      await restore(backup, restored);
      await expectHistoryOfOriginal(restored);
    },
    SLOW,
  );

  it(
    'restores a backup of PostgreSQL into KurrentDB',
    async () => {
      const postgres = await createInstallation('', '');
      await restore(backup, postgres);
      const second = join(files, 'of-postgres');
      expect((await run('backup', postgres, second)).status).toBe(0);
      const restored = await createInstallation('again_');
      await restore(second, restored);
      await expectHistoryOfOriginal(restored);
    },
    SLOW,
  );
});

/** Stamps, with and without Idempotency-Keys, and enrols new customers, until it is stopped. */
class Load {
  readonly stamps = new Map<string, number>();
  count = 0;
  private isRunning = true;
  private readonly running: Promise<unknown>;

  constructor() {
    this.running = Promise.all([
      ...paths.map((path, i) =>
        this.repeat(async () => {
          const headers: Record<string, string> = i % 2 ? { 'idempotency-key': randomUUID() } : {};
          const response = await store.send('POST', `${path}/stamp`, { stamps: 1 }, headers);
          if (response.status !== 200) throw new Error(response.text);
          this.stamps.set(path, (this.stamps.get(path) ?? 0) + 1);
        }),
      ),
      this.repeat(async () => void (await enrol(store, { email: `${randomUUID()}@load.example` }))),
    ]);
  }

  async stop(): Promise<number> {
    this.isRunning = false;
    await this.running;
    return this.count;
  }

  private async repeat(work: () => Promise<void>): Promise<void> {
    while (this.isRunning) {
      await work();
      this.count++;
    }
  }
}

const omitPosition = ({ position: _position, ...event }: StoredEvent) => event;

/** Expects the events of the original up to a point, with every stamp that was acknowledged before. */
async function expectHistoryOfOriginal(restored: NodeJS.ProcessEnv): Promise<void> {
  const events = (await readHistory(restored)).map(omitPosition);
  const all = (await readHistory(original)).map(omitPosition);
  expect(events).toEqual(all.slice(0, events.length));
  for (const [path, count] of acknowledged) {
    const stream = `customer_card-${path.split('/').at(-1)}`;
    const stamps = events.filter(
      (event) => event.stream === stream && event.type === 'StampsEarned',
    );
    expect(stamps.length).toBeGreaterThanOrEqual(count);
  }
}

async function expectServiceGoesOn(restored: NodeJS.ProcessEnv): Promise<void> {
  await start(restored);
  for (const path of paths) {
    const { stamps_count: before } = (await store.get<CustomerCardDetailJson>(path)).body;
    expect(before).toBeGreaterThanOrEqual(acknowledged.get(path) ?? 0);
    expect((await store.stamp(path)).status).toBe(200);
    expect(await store.readBalance(path)).toBe(before + 1);
  }
  await enrol(store);
  await stopAll();
  const verification = await run('verify', restored);
  expect([verification.status, verification.output]).toEqual([0, expect.stringContaining(CLEAN)]);
}

async function restore(folder: string, into: NodeJS.ProcessEnv): Promise<void> {
  const restoration = await run('restore', into, folder);
  expect([restoration.status, restoration.output]).toEqual([0, expect.stringContaining(CLEAN)]);
}

/** Creates an empty database, and settings for it. @param eventStoreUrl empty: events are in PostgreSQL */
async function createInstallation(
  prefix: string,
  eventStoreUrl = server.connectionString,
): Promise<NodeJS.ProcessEnv> {
  const database = await createTestDatabase();
  databases.push(database);
  return createTestEnvironment(database.url, {
    DATABASE_MIGRATION_URL: database.ownerUrl,
    PORT: String(port),
    EVENT_STORE_URL: eventStoreUrl,
    EVENT_STORE_STREAM_PREFIX: prefix,
  });
}

async function start(environment: NodeJS.ProcessEnv): Promise<void> {
  for (const app of ['api', 'dispatcher'])
    programs.push(startProgram(`dist/apps/${app}/main.js`, environment));
  await eventually(
    () =>
      fetch(`${store.baseUrl}/health/ready`).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );
}

async function stopAll(): Promise<void> {
  await Promise.all(programs.splice(0).map((program) => program.kill('SIGTERM')));
}

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
