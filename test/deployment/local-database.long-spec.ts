import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getStartTime, listProcesses } from '../../apps/cli/processes.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { findFreePort, startProgram, type Program } from '../support/services/program.js';
import { Client } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp } from '../support/services/webhook-dispatcher.js';

const SLOW = 300_000;
const TO_EVENTSTOREDB = ['move-events', '--to', 'eventstoredb'];
const TO_POSTGRES = ['move-events', '--to', 'postgres'];
const REBASE = ['rebase-positions'];

type Local = { api_token: string; account_id: number };

/** One installation with an embedded PostgreSQL in its data folder. The tests build on each other. */
let folder: string;
let dataDir: string;
let port: number;
let eventStoreDb: EventStoreDb;
let store: Client;
let path: string;
const programs: Program[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-embedded-'));
  // Passable, so that PostgreSQL's own user reaches its data in it when the tests run as root.
  chmodSync(folder, 0o711);
  dataDir = join(folder, 'data');
  port = await findFreePort();
  eventStoreDb = await startEventStoreDb();
}, SLOW);

afterAll(async () => {
  for (const program of programs) await program.kill('SIGINT');
  await eventStoreDb.stop();
  rmSync(folder, { recursive: true, force: true });
}, SLOW);

describe('on the database of npm start', () => {
  it.each([[TO_EVENTSTOREDB], [TO_POSTGRES], [REBASE]])(
    'inkpad %j refuses to run before there is a database, and creates none',
    async (command) => {
      expect(await run(command)).toEqual({
        status: 1,
        output: `There is no database in ${dataDir} yet, so inkpad ${command[0]} has nothing to work on: npm start creates one. For another database, set DATABASE_URL; for another data folder, DATA_DIR.\n`,
      });
      expect(existsSync(dataDir)).toBe(false);
    },
  );

  it.each([[TO_EVENTSTOREDB], [REBASE], [['restore', 'backup']]])(
    'inkpad %j refuses to run while npm start is running, and does not stop it',
    async (command) => {
      if (programs.length === 0) await startAndOpenStore();
      if (command[0] === 'restore') await backUp();
      const { status, output } = await run(command);
      expect([status, output]).toEqual([
        1,
        expect.stringMatching(
          /Inkpad is running on \S+ \(process \d+\): stop it, then run inkpad [a-z-]+ again\.\n$/,
        ),
      ]);
      expect(await stampsCount()).toBe(0);
    },
    SLOW,
  );

  it(
    'inkpad rebase-positions renumbers the events, and leaves no process running',
    async () => {
      await stamp(store, path);
      await stop('SIGINT');
      const { status, output } = await run(REBASE);
      expect([status, output]).toEqual([
        0,
        expect.stringMatching(/\d+ events are in their original order/),
      ]);
      expectNothingRuns();
      await start();
      await stamp(store, path);
      expect(await stampsCount()).toBe(2);
    },
    SLOW,
  );

  it(
    'inkpad rebase-positions stops the api and dispatcher that a killed npm start left running',
    async () => {
      const { api, dispatcher } = readRun();
      await stop('SIGKILL');
      expect((await run(REBASE)).status).toBe(0);
      expect([api, dispatcher].map((left) => getStartTime(left?.pid ?? 0))).toEqual([null, null]);
      expectNothingRuns();
    },
    SLOW,
  );

  it.each([
    ['SIGTERM', /ended early \(killed by SIGTERM\): run it again\.\n$/],
    ['SIGINT', /ended early \(killed by SIGTERM\): run it again\.\n$/],
    ['SIGKILL', /^/],
  ] as const)(
    'inkpad move-events leaves no process running after %s',
    async (signal, message) => {
      const move = await startSlowMove();
      await move.kill(signal);
      expect(move.output()).toMatch(message);
      await eventually(listProcessesOnFolder, (running) => running.length === 0);
    },
    SLOW,
  );

  it(
    'inkpad move-events makes npm start and inkpad rebase-positions refuse to run until it has ended',
    async () => {
      const move = await startSlowMove();
      expect(await run(REBASE)).toEqual({
        status: 1,
        output: expect.stringMatching(
          /^inkpad move-events is working on \S+ \(process \d+\): wait until it has ended, then run inkpad rebase-positions\.\n$/,
        ),
      });
      const service = startProgram('tools/start/start.mjs', settings());
      expect(await service.exitCode).toBe(1);
      expect(service.output()).toMatch(
        /^inkpad move-events is working on \S+ \(process \d+\): wait until it has ended, then run npm start\.\n$/,
      );
      eventStoreDb.fault.clear();
      expect([await move.exitCode, move.output()]).toEqual([
        0,
        expect.stringMatching(/eventstoredb holds all \d+ events/),
      ]);
      expectNothingRuns();
    },
    SLOW,
  );

  it(
    'inkpad move-events moves the events to EventStoreDB and back',
    async () => {
      await start(eventStoreDbSettings());
      await stamp(store, path);
      expect(await stampsCount()).toBe(3);
      await stop('SIGINT');
      const back = await run(TO_POSTGRES);
      expect([back.status, back.output]).toEqual([
        0,
        expect.stringMatching(/postgres holds all \d+ events/),
      ]);
      await start();
      await stamp(store, path);
      expect(await stampsCount()).toBe(4);
      await stop('SIGINT');
      expectNothingRuns();
    },
    SLOW,
  );

  it('inkpad move-events refuses an unknown --to, and leaves no process running', async () => {
    const { status, output } = await run(['move-events', '--to', 'mongodb']);
    expect([status, output]).toEqual([
      2,
      expect.stringMatching(
        /^error: .*'mongodb' is invalid. Allowed choices are eventstoredb, pos.*\n$/,
      ),
    ]);
    expectNothingRuns();
  });
});

/** Sets variables to be empty, which counts as unset and overrides a .env file. */
function settings(): NodeJS.ProcessEnv {
  return {
    HOME: folder,
    DATABASE_URL: '',
    PUBLIC_URL: '',
    HOST: '',
    PORT: String(port),
    DATA_DIR: dataDir,
    METRICS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '100000',
  };
}

function eventStoreDbSettings(): NodeJS.ProcessEnv {
  return {
    ...settings(),
    EVENT_STORE_URL: eventStoreDb.connectionString,
    EVENT_STORE_STREAM_PREFIX: 'embedded_',
  };
}

/** Starts a command as npx does. */
function startScript([name = '', ...args]: string[]): Program {
  const environment = name === 'move-events' ? eventStoreDbSettings() : settings();
  return name === 'restore'
    ? startProgram('apps/cli/inkpad.cjs', { ...environment, ...masterKey() }, [
        name,
        join(folder, 'backup'),
      ])
    : startProgram('apps/cli/inkpad.cjs', environment, [name, ...args]);
}

async function run(command: string[]): Promise<{ status: number | null; output: string }> {
  const program = startScript(command);
  return { status: await program.exitCode, output: program.output() };
}

function masterKey(): NodeJS.ProcessEnv {
  return { MASTER_KEY_FILE: join(dataDir, 'master.key') };
}

async function backUp(): Promise<void> {
  const { exitCode } = startProgram('apps/cli/inkpad.cjs', settings(), [
    'backup',
    join(folder, 'backup'),
  ]);
  expect(await exitCode).toBe(0);
}

/** Starts a move that waits for EventStoreDB. Those before it may have appended everything, so it may only read. */
async function startSlowMove(): Promise<Program> {
  const { streamReads } = eventStoreDb.requestCounts;
  eventStoreDb.fault.delayResponses(3_000);
  const move = startScript(TO_EVENTSTOREDB);
  await eventually(
    () => eventStoreDb.requestCounts.streamReads,
    (now) => now > streamReads,
  );
  return move;
}

async function startAndOpenStore(): Promise<void> {
  await start();
  const local = JSON.parse(readFileSync(join(dataDir, 'local.json'), 'utf8')) as Local;
  store = new Client(`http://127.0.0.1:${port}`, local.account_id, local.api_token);
  for (let i = 0; i < 10; i++) ({ path } = await enrol(store, { rewards: [5] }));
}

async function start(environment = settings()): Promise<void> {
  const service = startProgram('tools/start/start.mjs', environment);
  programs.push(service);
  let hasEnded = false;
  void service.exitCode.then(() => (hasEnded = true));
  await eventually(service.output, (text) => hasEnded || text.includes('Ctrl-C stops Inkpad.'));
  if (hasEnded) throw new Error(`the start failed:\n${service.output()}`);
}

async function stop(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  await programs.pop()?.kill(signal);
}

async function stampsCount(): Promise<number> {
  return await store.readBalance(path);
}

function readRun(): { api?: { pid: number }; dispatcher?: { pid: number } } {
  return JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as ReturnType<typeof readRun>;
}

/** Lists the commands of processes that work on the data folder: each names PostgreSQL's data or its lock. */
function listProcessesOnFolder(): string[] {
  const { data } = JSON.parse(readFileSync(join(dataDir, 'postgres.json'), 'utf8')) as {
    data: string;
  };
  return listProcesses()
    .map(({ command }) => command)
    .filter((command) => command.includes(data === 'postgres' ? join(dataDir, data) : data));
}

function expectNothingRuns(): void {
  expect(listProcessesOnFolder()).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => /^(run\.json|starter\.lock)/.test(name))).toEqual(
    [],
  );
}
