import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres, type EmbeddedPostgres } from '../../scripts/embedded-postgres.mjs';
import { testEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { freePort, runNode, startProgram, type Program } from '../support/services/program.js';
import { Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { Client, type ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const BACKUP = 'dist/scripts/backup.js';
const RESTORE = 'dist/scripts/restore.js';
const VERIFY = 'dist/scripts/verify.js';
const SLOW = 600_000;
const NAME = 'Annabella';

/** One installation, from its first start to the one that goes on elsewhere. The steps build on each other. */
let files: string;
let first: string;
let backup: string;
let receiver: Receiver;
let port: number;
let store: Client;
let path: string;
const started: Program[] = [];

type Local = { api_token: string; account_id: number };
type Stamped = { reference: string };

/** Empty counts as not given, and wins over a .env file. */
const settings = (dataDir: string): NodeJS.ProcessEnv => ({
  HOME: files,
  DATABASE_URL: '',
  PUBLIC_URL: '',
  HOST: '',
  PORT: String(port),
  DATA_DIR: dataDir,
  RATE_LIMIT_PER_MINUTE: '100000',
});

const run = (script: string, args: string[], environment: NodeJS.ProcessEnv) =>
  runNode([script, ...args], environment);

const idOf = ({ headers }: Received) => String(headers['webhook-id']);

async function start(dataDir: string): Promise<Program> {
  const service = startProgram('scripts/start.mjs', settings(dataDir));
  started.push(service);
  let ended = false;
  void service.exitCode.then(() => (ended = true));
  await eventually(service.output, (text) => ended || text.includes('Ctrl-C stops Inkpad.'));
  if (ended) throw new Error(`the start failed:\n${service.output()}`);
  return service;
}

/** Stamps with a receipt number, one after the other, until it is told to stop. */
function stampOn(name: string): { stop: () => Promise<Stamped[]>; acknowledged: Stamped[] } {
  const acknowledged: Stamped[] = [];
  let going = true;
  const done = (async () => {
    for (let n = 0; going; n++) {
      const reference = `${name}-${n}`;
      const { status, text } = await store.post(`${path}/stamp`, {
        stamps: 1,
        external_ref: reference,
        note: `for ${NAME}`,
      });
      expect([status, text]).toEqual([200, expect.any(String)]);
      acknowledged.push({ reference });
    }
  })();
  return {
    acknowledged,
    stop: async () => {
      going = false;
      await done;
      return acknowledged;
    },
  };
}

/** Receipt numbers of the stamps that the card's history has. */
async function referencesIn(client: Client): Promise<string[]> {
  const remainders: string[] = [];
  let next: string | undefined = `${path}/events?limit=100`;
  while (next) {
    const answer: ApiResponse<{ external_ref?: string | null }[]> = await client.get(next);
    const { status, body, headers } = answer;
    expect(status).toBe(200);
    for (const { external_ref: reference } of body) if (reference) remainders.push(reference);
    const link: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    next = link && new URL(link).pathname + new URL(link).search;
  }
  return remainders;
}

beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), 'inkpad-backup-'));
  // Passable, so that PostgreSQL's own user reaches its data in it when the tests run as root.
  chmodSync(files, 0o711);
  [first, backup] = [join(files, 'first'), join(files, 'backup')];
  receiver = await Receiver.start();
  port = await freePort();
  await start(first);
  const local = JSON.parse(readFileSync(join(first, 'local.json'), 'utf8')) as Local;
  store = new Client(`http://127.0.0.1:${port}`, local.account_id, local.api_token);
  ({ path } = await enrol(store, {
    card: { stamps_required: 21 },
    rewards: [1],
    email: `${NAME}@shop.example`,
  }));
  const { status, text } = await store.post(`${store.store}/webhook_subscriptions`, {
    events: ['stamp.earned'],
    target_url: receiver.url,
  });
  if (status !== 201) throw new Error(text);
}, SLOW);

afterAll(async () => {
  await Promise.all(started.map((service) => service.kill('SIGINT')));
  await receiver.stop();
  rmSync(files, { recursive: true, force: true });
}, SLOW);

describe('npm run backup and npm run restore', () => {
  let before: Stamped[];
  let delivered: string[];

  it(
    'back up a service while it stamps',
    async () => {
      const early = stampOn('before');
      await eventually(
        () => early.acknowledged.length,
        (n) => n >= 20,
      );
      before = await early.stop();
      await eventually(
        () => receiver.events.length,
        (n) => n === before.length,
      );
      const running = JSON.parse(readFileSync(join(first, 'run.json'), 'utf8')) as {
        postgres: { owner_url: string };
      };
      const database = new pg.Client(running.postgres.owner_url);
      await database.connect();
      await eventually(
        () => database.query(`select from webhook_deliveries where status = 'delivered'`),
        ({ rowCount }) => rowCount === before.length,
      );
      await database.end();
      delivered = receiver.events.map(idOf);

      const meanwhile = stampOn('meanwhile');
      const program = startProgram(BACKUP, settings(first), [backup]);
      expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
      const all = await meanwhile.stop();
      expect(all.length).toBeGreaterThan(0);
      expect(program.output()).toContain(`keep a copy of ${join(first, 'master.key')} elsewhere`);
    },
    SLOW,
  );

  it('reveal no name, token or key to somebody with only the folder', () => {
    const secrets = [
      NAME,
      store.token ?? '',
      readFileSync(join(first, 'master.key'), 'utf8').trim(),
      readFileSync(join(first, 'checkpoint.key'), 'utf8').trim(),
    ];
    for (const name of readdirSync(backup)) {
      const content = readFileSync(join(backup, name));
      for (const secret of secrets) expect([name, content.includes(secret)]).toEqual([name, false]);
      expect([name, content.includes(NAME.toLowerCase())]).toEqual([name, false]);
    }
  });

  it('overwrite no backup', () => {
    const manifest = readFileSync(join(backup, 'manifest.json'));
    expect(run(BACKUP, [backup], settings(first))).toEqual({
      status: 1,
      output: expect.stringContaining(`${backup} already exists. Choose a new folder.\n`),
    });
    expect(readFileSync(join(backup, 'manifest.json')).equals(manifest)).toBe(true);
    expect(run(BACKUP, ['--check', backup], settings(first)).status).toBe(0);
  });

  it('restore with the right key alone, and change nothing before they have it', () => {
    const target = join(files, 'other key');
    const other = randomBytes(32).toString('base64');
    for (const key of ['', other]) {
      const refused = run('scripts/restore.mjs', [backup], {
        ...settings(target),
        MASTER_KEY: key,
      });
      expect(refused.status).toBe(1);
      expect(refused.output).toMatch(
        /This backup can be opened with the master key [0-9a-f]{8} alone/,
      );
      expect(existsSync(target)).toBe(false);
    }
  });

  it.each([
    ['a file that is missing', (folder: string) => rmSync(join(folder, 'es.events.sealed'))],
    [
      'a file in which a bit was changed',
      (folder: string) => {
        const file = join(folder, 'public.customers.sealed');
        const content = readFileSync(file);
        content[20] = (content[20] ?? 0) ^ 1;
        writeFileSync(file, content);
      },
    ],
    [
      'a manifest that was changed',
      (folder: string) => {
        const file = join(folder, 'manifest.json');
        const manifest = JSON.parse(readFileSync(file, 'utf8')) as { tables: { name: string }[] };
        manifest.tables = manifest.tables.filter(({ name }) => name !== 'public.audit_log');
        writeFileSync(file, JSON.stringify(manifest));
      },
    ],
    ['no manifest', (folder: string) => rmSync(join(folder, 'manifest.json'))],
  ])('change nothing for %s', (what, change) => {
    const [damaged, target] = [join(files, what), join(files, `into ${what}`)];
    cpSync(backup, damaged, { recursive: true });
    change(damaged);
    const refused = run('scripts/restore.mjs', [damaged], {
      ...settings(target),
      MASTER_KEY_FILE: join(first, 'master.key'),
    });
    expect(refused.status).toBe(1);
    expect(refused.output).toMatch(/missing|not what was backed up|was changed/);
    expect(existsSync(target)).toBe(false);
  });

  it(
    'do not restore into a folder that is in use',
    () => {
      const refused = run('scripts/restore.mjs', [backup], settings(first));
      expect(refused.status).toBe(1);
      expect(refused.output).toContain(`Inkpad is running on ${first}`);
    },
    SLOW,
  );

  it(
    'bring back every stamp from before the backup, and go on with the same token',
    async () => {
      await Promise.all(started.map((service) => service.kill('SIGINT')));
      const second = join(files, 'second');
      const restored = run('scripts/restore.mjs', [backup], {
        ...settings(second),
        MASTER_KEY_FILE: join(first, 'master.key'),
      });
      expect([restored.status, restored.output]).toEqual([0, expect.any(String)]);
      expect(restored.output).toContain('every read model matches its events');
      expect(restored.output).toContain('erasure:repeat');
      const again = run('scripts/restore.mjs', [backup], settings(second));
      expect(again.status).toBe(1);
      expect(again.output).toMatch(/is in use[.] Restore into an empty database/);

      const from = receiver.received.length;
      await start(second);
      const local = JSON.parse(readFileSync(join(second, 'local.json'), 'utf8')) as Local;
      expect(local.api_token).toBe(store.token);
      const there = new Set(await referencesIn(store));
      expect(before.filter(({ reference }) => !there.has(reference))).toEqual([]);

      // A receipt number of then still counts once.
      const customerCard = await store.get<{ stamps_count: number }>(path);
      await store.post(`${path}/stamp`, { stamps: 1, external_ref: before[0]?.reference });
      expect((await store.get<{ stamps_count: number }>(path)).body.stamps_count).toBe(
        customerCard.body.stamps_count,
      );

      await store.post(`${path}/stamp`, { stamps: 1, external_ref: 'afterwards' });
      const sent = await eventually(
        () => receiver.received.slice(from),
        (received) => received.some(({ text }) => text.includes('"afterwards"')),
      );
      expect(sent.map(idOf).filter((id) => delivered.includes(id))).toEqual([]);
      const verified = run(VERIFY, [], settings(second));
      expect(verified.status).toBe(0);
    },
    SLOW,
  );
});

describe('a process that is killed', () => {
  let server: EmbeddedPostgres;
  let database: pg.Client;
  let environment: NodeJS.ProcessEnv;

  beforeAll(async () => {
    server = await startPostgres({
      dataDir: mkdtempSync(join(files, 'server-')),
      tie: true,
      settings: { fsync: 'off' },
    });
    environment = testEnvironment(server.url, {
      DATABASE_MIGRATION_URL: server.ownerUrl,
      MASTER_KEY: readFileSync(join(first, 'master.key'), 'utf8').trim(),
    });
    database = new pg.Client(server.ownerUrl);
    await database.connect();
  }, SLOW);

  afterAll(async () => {
    await database.end();
    await server.remove();
  }, SLOW);

  it(
    'while it restores leaves a database that nothing starts on, and that can be restored again',
    async () => {
      // Migrated and never used is empty as well.
      expect(run('dist/scripts/migrate.js', [], environment).status).toBe(0);
      await database.query('begin; lock table webhook_attempts in exclusive mode');
      const killed = startProgram(RESTORE, environment, [backup]);
      const waiting = () =>
        database.query(`select from pg_locks where not granted and relation is not null`);
      await eventually(waiting, ({ rowCount }) => rowCount !== 0);
      await killed.kill('SIGKILL');
      await database.query('rollback');
      const says =
        'A restore into this database was not finished: run npm run restore again, or begin with a new database.';
      for (const program of [
        'dist/scripts/migrate.js',
        'dist/apps/api/src/main.js',
        'dist/apps/dispatcher/src/main.js',
      ]) {
        const refused = run(program, [], environment);
        const code = program.includes('/main.js') ? 78 : 1;
        expect([program, refused.status]).toEqual([program, code]);
        expect(refused.output).toContain(says);
      }

      // The connection of the killed one may live a moment longer than it.
      await eventually(
        () => database.query(`select from pg_stat_activity where application_name like 'inkpad %'`),
        ({ rowCount }) => rowCount === 0,
      );
      // Nor is one half done whose files of the data folder cannot be kept.
      const dataDir = mkdtempSync(join(files, 'data-'));
      symlinkSync(join(dataDir, 'nowhere', 'local.json'), join(dataDir, 'local.json'));
      const refused = run(RESTORE, [backup], { ...environment, DATA_DIR: dataDir });
      expect([refused.status, refused.output]).toEqual([1, expect.stringContaining('EEXIST')]);
      const again = run(RESTORE, [backup], environment);
      expect([again.status, again.output]).toEqual([0, expect.any(String)]);
      expect(run(VERIFY, [], environment).status).toBe(0);
    },
    SLOW,
  );

  it(
    'while it backs up leaves nothing that looks like a backup',
    async () => {
      const target = join(files, 'killed');
      await database.query('begin');
      await database.query('lock table rewards in access exclusive mode');
      const killed = startProgram(BACKUP, environment, [target]);
      const drafts = () =>
        readdirSync(files).filter((name) => name.startsWith('killed.unfinished'));
      await eventually(drafts, (result) => result.length === 1);
      await killed.kill('SIGKILL');
      await database.query('rollback');
      expect(existsSync(target)).toBe(false);
      expect(run(BACKUP, ['--check', join(files, drafts()[0] ?? '')], environment)).toEqual({
        status: 1,
        output: expect.stringContaining('is not a complete backup'),
      });
      const again = run(BACKUP, [target], environment);
      expect([again.status, again.output]).toEqual([0, expect.any(String)]);
    },
    SLOW,
  );
});
