import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createProgramCommands } from '../../apps/cli/programs.js';
import { findLastMessage } from '../../apps/cli/processes.mjs';
import { createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort } from '../support/services/program.js';
import { announcedDatabase } from '../support/services/retirement.js';

type Ended = { code: number | null; out: string; errorOutput: string };

const repository = process.cwd();
/** A folder of this test alone, passable for PostgreSQL's own user when the tests run as root. */
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'start-failures-'));
fs.chmodSync(folder, 0o711);
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

/** A copy of a built clone, so that other tests do not see its .env. */
const clone = path.join(folder, 'clone');
for (const name of ['clients', 'data', 'docs', 'libs', 'node_modules']) {
  fs.mkdirSync(clone, { recursive: true });
  fs.symlinkSync(path.join(repository, name), path.join(clone, name));
}
for (const name of fs.readdirSync(repository).filter((file) => /[.](?:json|md)$/.test(file))) {
  fs.copyFileSync(path.join(repository, name), path.join(clone, name));
}
// Not a link to dist: what is built here must not replace what other tests run.
for (const name of ['apps', 'tools', 'dist']) {
  fs.cpSync(path.join(repository, name), path.join(clone, name), {
    recursive: true,
    preserveTimestamps: true,
  });
}

describe('npm start with a retired API version', () => {
  let port: number;
  let starter: ChildProcess;
  let output = '';
  let retiredDatabase: TestDatabase;

  beforeAll(async () => {
    port = await findFreePort();
    retiredDatabase = await announcedDatabase(new Date('2024-01-31'), new Date('2025-06-30'));
    starter = startProcess(['tools/start/start.mjs'], {
      DATABASE_URL: retiredDatabase.url,
      METRICS_PORT: '0',
      DATA_DIR: path.join(folder, 'retired'),
      PORT: `${port}`,
      API_V1_DEPRECATION_DATE: '2024-01-31',
      API_V1_SUNSET_DATE: '2025-06-30',
    });
    for (const stream of [starter.stdout, starter.stderr]) {
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    }
  });

  afterAll(async () => {
    if (starter.exitCode === null) {
      starter.kill('SIGINT');
      await new Promise((resolve) => starter.once('exit', resolve));
    }
    await retiredDatabase.close();
  });

  it('starts api and dispatcher, prints the API token, and responds to API requests with 410', async () => {
    await eventually(
      () => output,
      (text) => starter.exitCode !== null || text.includes('Ctrl-C stops Inkpad.'),
    );
    expect(output).toMatch(/API token: ink_\S+ \(kept in/);
    const get = (name: string) => fetch(`http://127.0.0.1:${port}${name}`);
    expect((await get('/api/v1/status')).status).toBe(410);
    expect((await get('/health/live')).status).toBe(200);
    const run = JSON.parse(
      fs.readFileSync(path.join(folder, 'retired', 'run.json'), 'utf8'),
    ) as Record<string, { pid?: number }>;
    expect(run['dispatcher']?.pid).toBeGreaterThan(0);
  });

  it('is found by inkpad and its demo through the settings in .env', async () => {
    fs.writeFileSync(
      path.join(clone, '.env'),
      `DATABASE_URL=${retiredDatabase.url}\nDATA_DIR=${path.join(folder, 'retired')}\nPORT=${port}\n`,
    );
    const { code, out, errorOutput } = await run('cli', [
      'token:create',
      '--name',
      'x',
      '--user',
      EMAIL,
    ]);
    expect([code, errorOutput]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(
          `^database: \\w+ at 127\\.0\\.0\\.1:\\d+ as inkpad_app; service: http://localhost:${port}\n$`,
        ),
      ),
    ]);
    const { api_token } = JSON.parse(out) as { api_token: string };
    expect(api_token).toMatch(/^ink_/);

    const demo = await run('demo', []);
    expect(demo).toMatchObject({
      code: 1,
      errorOutput: expect.stringMatching(`^service: http://localhost:${port}, store 1\n`),
    });
    expect(lastLine(demo)).toBe('Something went wrong: Version v1 of this API is retired');
  });
});

describe('a program or script', () => {
  let freePortNumber: number;
  let occupiedServer: Server;
  let takenPort: number;
  let ownDatabase: TestDatabase;
  let database: string;
  const key = Buffer.alloc(32, 7).toString('base64');

  beforeAll(async () => {
    freePortNumber = await findFreePort();
    occupiedServer = createServer().listen(0, '127.0.0.1');
    await once(occupiedServer, 'listening');
    takenPort = (occupiedServer.address() as AddressInfo).port;
    ownDatabase = await createTestDatabase();
    database = ownDatabase.url;
    fs.rmSync(path.join(clone, '.env'), { force: true });
    // Binds the database to its key.
    const { code, errorOutput } = await runProgram('cli', settings());
    if (code !== 0) throw new Error(errorOutput);
  });

  afterAll(async () => {
    occupiedServer.close();
    await ownDatabase.close();
  });

  const PROGRAM_COMMANDS = createProgramCommands().map((command) => command.name());
  const SCRIPTS = ['cli', 'verify'] as const;
  const PROGRAMS = ['api', 'dispatcher'] as const;
  const EVERYTHING = ['start', ...PROGRAMS, ...SCRIPTS] as const;
  type What = (typeof EVERYTHING)[number];
  type FailureCase = [settings: () => NodeJS.ProcessEnv, which: readonly What[], last: RegExp];

  const FAILURES: Record<string, FailureCase> = {
    'two invalid settings': [
      () => ({ RATE_LIMIT_PER_MINUTE: 'many', LOG_LEVEL: 'loud' }),
      EVERYTHING,
      /^Settings that cannot be used:\n {2}RATE_LIMIT_PER_MINUTE: must be a whole .*\n {2}LOG_LEVEL: must be silent, .*$/,
    ],
    'a missing file of a secret': [
      () => ({ REDIS_URL_FILE: '/no/such/file' }),
      ['api', 'cli'],
      /^Settings .*\n {2}REDIS_URL_FILE: \/no\/such\/file cannot be read: it does not exist \(ENOENT\)$/,
    ],
    'a wrong password': [
      () => ({ DATABASE_URL: changeUrl(database, (url) => (url.password = 'wrong')) }),
      EVERYTHING,
      /^The database .*(the password is wrong, or there is no such database user|password authentication failed .*)\.$/,
    ],
    'a database that does not exist': [
      () => ({ DATABASE_URL: changeUrl(database, (url) => (url.pathname = '/none')) }),
      ['dispatcher', 'cli'],
      /^The database none at 127\.0\.0\.1:\d+ as \w+ cannot be used: database "none" does not exist\.$/,
    ],
    'a database server that does not run': [
      () => ({ DATABASE_URL: 'postgres://u:secret@127.0.0.1:1/none', START_WAIT_SECONDS: '0' }),
      EVERYTHING,
      /^The database (?!.*secret).*ECONNREFUSED.*\.$/,
    ],
    'a port without a database server': [
      () => ({ DATABASE_URL: `postgres://u:secret@127.0.0.1:${takenPort}/none` }),
      ['cli'],
      /^The database none at .* cannot be used: .*\.$/,
    ],
    'a master key of another database': [
      () => ({ MASTER_KEY: Buffer.alloc(32).toString('base64') }),
      ['api', 'cli', 'verify'],
      /^MASTER_KEY is not the key of this database .*\.$/,
    ],
    'no DATABASE_URL, and no running service': [
      () => ({ DATABASE_URL: '' }),
      SCRIPTS,
      /^DATABASE_URL is not set and no running service was found .*: run npm start first, or set DATABASE_URL$/,
    ],
    'a data folder that cannot be created': [
      () => ({ DATA_DIR: '/proc/none', MASTER_KEY: '' }),
      EVERYTHING,
      /^(The data folder \/proc\/none cannot be written|DATA_DIR: \/proc\/none\/master\.key cannot be used: it does not exist) \(ENOENT\).*\.$/,
    ],
    'a data folder that is a file': [
      () => ({ DATA_DIR: '/etc/hostname', MASTER_KEY: '' }),
      ['start', 'api'],
      /^(The data folder \/etc\/hostname cannot be written|DATA_DIR: .*\/master\.key cannot be used: .*) \(ENOTDIR\).*\.$/,
    ],
    'an occupied port': [
      () => ({ PORT: `${takenPort}`, HOST: '127.0.0.1' }),
      ['start', 'api'],
      /^(PORT: cannot listen on port|Port) \d+ .*$/,
    ],
    'an occupied port for metrics': [
      () => ({ METRICS_PORT: `${takenPort}` }),
      ['start', ...PROGRAMS],
      /^METRICS_PORT: .*port \d+ .*; choose another one, or 0 for any\.?$/,
    ],
    'an address of another machine': [
      () => ({ HOST: '203.0.113.1' }),
      ['start', 'api'],
      /^HOST: cannot listen at 203\.0\.113\.1 \(.*\); choose an address of this machine$/,
    ],
    'an option that the event store does not have': [
      () => ({ EVENT_STORE_URL: 'kurrentdb://inkpad:secret@127.0.0.1:1?tsl=false' }),
      EVERYTHING,
      /^Settings (?!.*secret).*\n {2}EVENT_STORE_URL: has an option that does not exist, tsl: there are tls, .*$/,
    ],
    'a password with a slash': [
      () => ({ DATABASE_URL: 'postgres://u:12/34@127.0.0.1:1/none' }),
      EVERYTHING,
      /^Settings that cannot be used:\n {2}DATABASE_URL: must have %25, %40, %2F and the like for special characters of name and password$/,
    ],
    'a missing font': [
      () => ({ POSTER_FONTS: '/no/such/font' }),
      ['api'],
      /^POSTER_FONTS: \/no\/such\/font cannot be used: it does not exist \(ENOENT\)$/,
    ],
  };
  const cases = Object.entries(FAILURES).flatMap(([name, [, which]]) =>
    which.map((what) => [name, what] as const),
  );

  it.each(cases)(
    'exits with a message that says what is wrong, without a stack trace: %s (%s)',
    async (name, what) => {
      const [createSettings, , last] = FAILURES[name] ?? [];
      const { code, out, errorOutput } = await runProgram(what, {
        ...settings(),
        ...createSettings?.(),
      });
      expect(out + errorOutput).not.toMatch(/^ +at /m);
      expect(findLastMessage(errorOutput.split('\n'))).toMatch(last ?? '');
      expect([1, 78]).toContain(code);
    },
  );

  it('exits with 78 for an invalid setting, and with 1 for an unavailable database', async () => {
    expect((await runProgram('api', { ...settings(), PORT: 'x' })).code).toBe(78);
    const unreachable = {
      ...settings(),
      DATABASE_URL: 'postgres://u:p@127.0.0.1:1/none',
      START_WAIT_SECONDS: '0',
    };
    expect((await runProgram('api', unreachable)).code).toBe(1);
  });

  it.each(PROGRAMS)(
    'exits with 78 at once for what waiting does not help against: %s',
    async (name) => {
      for (const [setting, value] of [
        ['DATABASE_URL', changeUrl(database, (url) => (url.pathname = '/none'))],
        ['DATABASE_URL', changeUrl(database, (url) => (url.username = 'nobody'))],
        ['MASTER_KEY', Buffer.alloc(32).toString('base64')],
      ] as const) {
        expect((await runProgram(name, { ...settings(), [setting]: value })).code).toBe(78);
      }
    },
  );

  it('keeps the API token of a first start that ends because of a setting', async () => {
    const fresh = await createTestDatabase();
    const dataDir = fs.mkdtempSync(path.join(folder, 'first-'));
    const { code, errorOutput } = await runProgram('start', {
      ...settings(),
      DATA_DIR: dataDir,
      DATABASE_URL: fresh.url,
      POSTER_FONTS: '/no/such/font',
    });
    await fresh.close();
    expect([code, findLastMessage(errorOutput.split('\n'))]).toEqual([
      1,
      expect.stringMatching(/^POSTER_FONTS: /),
    ]);
    const localFile = fs.readFileSync(path.join(dataDir, 'local.json'), 'utf8');
    expect(JSON.parse(localFile)).toMatchObject({ api_token: expect.stringMatching(/^ink_/) });
  });

  it('checks the settings before it creates a database', async () => {
    const dataDir = fs.mkdtempSync(path.join(folder, 'unused-'));
    const { code, errorOutput } = await runProgram('start', {
      ...settings(),
      DATA_DIR: dataDir,
      DATABASE_URL: '',
      EVENT_STORE_URL: 'kurrentdb://127.0.0.1:1?foo=1',
    });
    expect([code, findLastMessage(errorOutput.split('\n'))]).toEqual([
      1,
      expect.stringContaining('EVENT_STORE_URL: has an option that does not exist, foo'),
    ]);
    expect(fs.readdirSync(dataDir)).not.toContain('postgres');
  });

  it('reports that .env is a folder', async () => {
    fs.mkdirSync(path.join(clone, '.env'));
    for (const what of ['start', 'cli'] as const) {
      expect(await runProgram(what, {})).toMatchObject({
        code: 1,
        errorOutput: `The settings in ${path.join(clone, '.env')} cannot be read (it is a folder).\n`,
      });
    }
    fs.rmdirSync(path.join(clone, '.env'));
  });

  it('prints its help on standard output, wherever it is asked for and without any settings', async () => {
    fs.mkdirSync(path.join(clone, '.env'));
    try {
      const general = await run('cli', ['--help']);
      expect(general).toEqual({ code: 0, out: expect.any(String), errorOutput: '' });
      for (const name of PROGRAM_COMMANDS) {
        expect(general.out).toMatch(new RegExp(`^ {2}${name}( \\S+)* {2,}\\S`, 'm'));
        const args = [name, '--x', '-h'];
        expect([args, await run('cli', args, { NODE_ENV: 'production' })]).toEqual([
          args,
          { code: 0, out: expect.stringContaining(`Usage: inkpad ${name} `), errorOutput: '' },
        ]);
      }
      for (const args of [
        ['help', 'backup'],
        ['backup', '--help'],
        ['--help', 'backup'],
      ]) {
        const { code, out } = await run('cli', args);
        expect([args, code, out]).toEqual([
          args,
          0,
          expect.stringMatching(/^Usage: inkpad backup .*\n\nExamples:\n/s),
        ]);
      }
    } finally {
      fs.rmdirSync(path.join(clone, '.env'));
    }
  });

  it('exits with 2 and one line of text when it is called wrongly', async () => {
    for (const [args, line] of [
      ...PROGRAM_COMMANDS.map(
        (name) => [[name, '--nonsense'], /unknown option|required option/] as const,
      ),
      [['migrate', 'now'], /too many arguments/],
      [['restore'], /missing required argument 'folder'/],
      [['bakcup'], /unknown command 'bakcup' \(Did you mean backup\?\)/],
      [['help', 'verfiy'], /unknown command 'verfiy' \(Did you mean verify\?\)/],
      [['--', 'backup'], /begin with the name/],
    ] as const) {
      const end = await run('cli', [...args], { NODE_ENV: 'production' });
      expect([args, end]).toEqual([
        args,
        { code: 2, out: '', errorOutput: expect.stringMatching(/^error: .*\n$/) },
      ]);
      expect(end.errorOutput).toMatch(line);
    }
  });

  it('reports that Inkpad was not built, and that its packages are missing', async () => {
    for (const [missing, sentence] of [
      ['dist', 'Inkpad has not been built yet: run npm start, or npm run build.\n'],
      ['node_modules', 'Its packages are missing: run npm start, or npm ci && npm run build.\n'],
    ] as const) {
      fs.renameSync(path.join(clone, missing), path.join(folder, missing));
      for (const script of ['cli', 'verify', 'demo', 'migrate']) {
        expect(await run(script, [])).toEqual({ code: 1, out: '', errorOutput: sentence });
      }
      fs.renameSync(path.join(folder, missing), path.join(clone, missing));
    }
  });

  it('reports that the service of the data folder is not running', async () => {
    const stale = fs.mkdtempSync(path.join(folder, 'stale-'));
    const local = { base_url: 'http://127.0.0.1:1', api_token: 'x', account_id: 1 };
    fs.writeFileSync(path.join(stale, 'local.json'), JSON.stringify(local));
    const output = await run('demo', [], { DATA_DIR: stale });
    expect([output.code, lastLine(output)]).toEqual([
      1,
      'Something went wrong: http://127.0.0.1:1 does not respond. Run npm start first, then try again.',
    ]);
  });

  function settings(): NodeJS.ProcessEnv {
    return {
      DATABASE_URL: database,
      MASTER_KEY: key,
      DATA_DIR: fs.mkdtempSync(path.join(folder, 'data-')),
      HOST: '127.0.0.1',
      PORT: `${freePortNumber}`,
      HEALTH_PORT: '0',
      METRICS_PORT: '0',
    };
  }

  function runProgram(what: What, environment: NodeJS.ProcessEnv): Promise<Ended> {
    const empty = Object.fromEntries(
      Object.entries(environment).filter(([, value]) => value !== ''),
    );
    if (what === 'start') return waitForExit(startProcess(['tools/start/start.mjs'], empty));
    if (what === 'api' || what === 'dispatcher') {
      return waitForExit(startProcess([`dist/apps/${what}/main.js`], empty));
    }
    return run(what, what === 'cli' ? ['audit:list'] : [], empty);
  }

  function changeUrl(url: string, change: (url: URL) => void): string {
    const parsed = new URL(url);
    change(parsed);
    return parsed.href;
  }
});

const EMAIL = 'owner@inkpad.local';

function lastLine({ errorOutput }: Ended): string | undefined {
  return errorOutput.trim().split('\n').at(-1);
}

/** Runs a command as npx does. `cli`: those that are no programs of their own. */
async function run(script: string, args: string[], settings: NodeJS.ProcessEnv = {}) {
  const child = startProcess(
    ['apps/cli/inkpad.cjs', ...(script === 'cli' ? [] : [script]), ...args],
    settings,
  );
  return waitForExit(child);
}

function startProcess(args: string[], settings: NodeJS.ProcessEnv): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: clone,
    env: { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function waitForExit(child: ChildProcess): Promise<Ended> {
  let [out, errorOutput] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, errorOutput };
}
