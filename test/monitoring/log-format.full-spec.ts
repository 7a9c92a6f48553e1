import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startCommand, startProgram } from '../support/services/program.js';

const SLOW = 300_000;
const UNREACHABLE = 'postgres://u:secret@127.0.0.1:1/none';

type Line = { time: string; level: string; process: string; pid: number; message: string };

/** Parses output of which every line has to be an object of the log. */
function parseLines(output: string): Line[] {
  const lines = output.split('\n').filter((line) => line !== '');
  const parsed = lines.map((line) => JSON.parse(line) as Line);
  for (const line of parsed) {
    expect(line).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: expect.stringMatching(/^(debug|info|warn|error|fatal)$/),
      process: expect.any(String),
      pid: expect.any(Number),
      message: expect.any(String),
    });
  }
  return parsed;
}

describe('with LOG_FORMAT=json', () => {
  let database: TestDatabase;
  let occupied: Server;
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-log-'));

  beforeAll(async () => {
    database = await createTestDatabase();
    occupied = createServer().listen(0, '127.0.0.1');
    await once(occupied, 'listening');
  });
  afterAll(async () => {
    occupied.close();
    await database.close();
    rmSync(folder, { recursive: true });
  });

  const createEnvironment = (settings: NodeJS.ProcessEnv) =>
    createTestEnvironment(database.url, { LOG_FORMAT: 'json', LOG_LEVEL: 'info', ...settings });
  const getTakenPort = () => String((occupied.address() as AddressInfo).port);
  const [API, DISPATCHER] = ['dist/apps/api/main.js', 'dist/apps/dispatcher/main.js'];
  const MIGRATE = 'dist/apps/cli/migrate.js';

  type Fault = [file: string, settings: () => NodeJS.ProcessEnv, code: number, message: RegExp];
  const faults: Record<string, Fault> = {
    'an invalid setting': [
      API,
      () => ({ PORT: 'x' }),
      78,
      /^Settings that cannot be used:\n {2}PORT/,
    ],
    'a database that is away': [
      DISPATCHER,
      () => ({ DATABASE_URL: UNREACHABLE, START_WAIT_SECONDS: '0' }),
      1,
      /^The database none at 127\.0\.0\.1:1 as u cannot be used: .*ECONNREFUSED/,
    ],
    'a port that is taken': [API, () => ({ PORT: getTakenPort() }), 78, /^PORT: cannot listen/],
    'a port of metrics that is taken': [
      DISPATCHER,
      () => ({ METRICS_PORT: getTakenPort() }),
      78,
      /^METRICS_PORT: cannot listen/,
    ],
    'a wrong master key': [
      API,
      () => ({ MASTER_KEY: Buffer.alloc(32, 1).toString('base64') }),
      78,
      /^MASTER_KEY is not the key of this database/,
    ],
    'a migration without a database': [
      MIGRATE,
      () => ({ DATABASE_URL: UNREACHABLE }),
      1,
      /^The database none at 127\.0\.0\.1:1 as u cannot be used: /,
    ],
  };

  it.each(Object.entries(faults))(
    'every line is an object, and the last one says what is wrong: %s',
    async (_name, [file, createSettings, code, message]) => {
      // Binds the database to the key of the tests.
      const first = startProgram(API, createEnvironment({}));
      await eventually(first.output, (text) => text.includes('listening on'), SLOW);
      await first.kill('SIGTERM');
      parseLines(first.output());

      const program = startProgram(file, createEnvironment(createSettings()));
      expect(await program.exitCode).toBe(code);
      const last = parseLines(program.output()).at(-1);
      expect(last).toMatchObject({ level: 'fatal', message: expect.stringMatching(message) });
      expect(last).not.toHaveProperty('stack');
    },
    SLOW,
  );

  it('a migration reports what it has done in objects', async () => {
    const program = startProgram(MIGRATE, createEnvironment({}));
    expect(await program.exitCode).toBe(0);
    const lines = parseLines(program.output());
    expect(lines.map(({ process: name, level }) => `${name} ${level}`)).toEqual(
      lines.map(() => 'migrate info'),
    );
    expect(lines.at(-1)?.message).toBe('the database is up to date');
  });

  it(
    'an error that nobody handles is an object with its stack and without its properties',
    async () => {
      const file = join(folder, 'throw.cjs');
      writeFileSync(
        file,
        `const looking = setInterval(() => {
          // Before, the process has not taken over what Node.js prints.
          if (process.listenerCount('uncaughtException') === 0) return;
          clearInterval(looking);
          process.emitWarning('a planted warning');
          setImmediate(() => {
            const cause = Object.assign(new Error('the cause'), { detail: 'Key (email)=(a@b.example)' });
            Promise.reject(new Error('planted', { cause }));
          });
        }, 100);`,
      );
      for (const [name, path] of [
        ['api', API],
        ['dispatcher', DISPATCHER],
      ] as const) {
        const settings = { DATABASE_URL: UNREACHABLE, NODE_OPTIONS: `--require ${file}` };
        const program = startProgram(path, createEnvironment(settings));
        expect(await program.exitCode).toBe(1);
        const lines = parseLines(program.output());
        expect(lines).toContainEqual(
          expect.objectContaining({ level: 'warn', message: 'Warning: a planted warning' }),
        );
        // Standard output and standard error are read each on their own.
        expect(lines.filter(({ level }) => level === 'fatal')).toMatchObject([
          {
            process: name,
            message: 'planted',
            stack: expect.stringMatching(/^Error: planted\n {4}at [^]*Caused by: Error: the cause/),
          },
        ]);
        expect(program.output()).not.toContain('a@b.example');
      }
    },
    SLOW,
  );

  it(
    'npm start writes objects alone, and no token',
    async () => {
      const port = await findFreePort();
      const dataDir = join(folder, 'data');
      const starter = startCommand(
        [process.execPath, 'tools/start/start.mjs'],
        createEnvironment({
          DATA_DIR: dataDir,
          PORT: `${port}`,
          PUBLIC_URL: '',
          LOG_LEVEL: 'info',
        }),
      );
      try {
        await eventually(starter.output, (text) => text.includes('running at'), SLOW);
      } finally {
        await starter.kill('SIGTERM');
      }
      const names = new Set(parseLines(starter.output()).map((line) => line.process));
      expect([...names].sort()).toEqual(['api', 'dispatcher', 'inkpad']);
      expect(starter.output()).not.toContain('ink_');

      const refused = startCommand(
        [process.execPath, 'tools/start/start.mjs'],
        createEnvironment({ DATA_DIR: dataDir, PORT: `${port}`, RATE_LIMIT_PER_MINUTE: 'many' }),
      );
      expect(await refused.exitCode).toBe(1);
      expect(parseLines(refused.output()).at(-1)).toMatchObject({
        level: 'fatal',
        process: 'inkpad',
        message: expect.stringMatching(/^Settings that cannot be used:\n {2}RATE_LIMIT_PER_MINUTE/),
      });
    },
    SLOW,
  );
});
