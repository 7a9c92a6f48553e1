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
import { join, resolve } from 'node:path';
import pg from 'pg';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { listProcesses } from '../../apps/cli/processes.mjs';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, runNode, startProgram, type Program } from '../support/services/program.js';
import { Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { Client, type ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const BACKUP = 'dist/apps/cli/backup.js';
const RESTORE = 'dist/apps/cli/restore.js';
const VERIFY = 'dist/apps/cli/verify.js';
const SLOW = 600_000;
const NAME = 'Annabella';

/** One installation, from its first start to its restored copy. The tests build on each other. */
let files: string;
let first: string;
let backup: string;
let receiver: Receiver;
let port: number;
let store: Client;
let path: string;
const programs: Program[] = [];

type Local = { api_token: string; account_id: number };
type Stamped = { reference: string };

/** Sets variables to be empty, which counts as unset and overrides a .env file. */
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

const getEventId = ({ headers }: Received) => String(headers['webhook-id']);

async function start(dataDir: string): Promise<Program> {
  const service = startProgram('tools/start/start.mjs', settings(dataDir));
  programs.push(service);
  let hasEnded = false;
  void service.exitCode.then(() => (hasEnded = true));
  await eventually(service.output, (text) => hasEnded || text.includes('Ctrl-C stops Inkpad.'));
  if (hasEnded) throw new Error(`the start failed:\n${service.output()}`);
  return service;
}

/** Adds stamps with receipt numbers, one after the other, until `stop` is called. */
function startStamping(name: string): { stop: () => Promise<Stamped[]>; acknowledged: Stamped[] } {
  const acknowledged: Stamped[] = [];
  let isRunning = true;
  const stamping = (async () => {
    for (let n = 0; isRunning; n++) {
      const reference = `${name}-${n}`;
      const { status, text } = await store.stamp(path, {
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
      isRunning = false;
      await stamping;
      return acknowledged;
    },
  };
}

/** Lists the receipt numbers of the stamps in the card's history. */
async function listReferences(client: Client): Promise<string[]> {
  const references: string[] = [];
  let next: string | undefined = `${path}/events?limit=100`;
  while (next) {
    const response: ApiResponse<{ external_ref?: string | null }[]> = await client.get(next);
    const { status, body, headers } = response;
    expect(status).toBe(200);
    for (const { external_ref: reference } of body) if (reference) references.push(reference);
    const link: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
    next = link && new URL(link).pathname + new URL(link).search;
  }
  return references;
}

beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), 'inkpad-backup-'));
  // Passable, so that PostgreSQL's own user reaches its data in it when the tests run as root.
  chmodSync(files, 0o711);
  [first, backup] = [join(files, 'first'), join(files, 'backup')];
  receiver = await Receiver.start();
  port = await findFreePort();
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
  await Promise.all(programs.map((service) => service.kill('SIGINT')));
  await receiver.stop();
  rmSync(files, { recursive: true, force: true });
}, SLOW);

describe('inkpad backup and inkpad restore', () => {
  let before: Stamped[];
  let deliveredIds: string[];
  /** The announcements that were being sent, and that were to be sent, when the backup was made. */
  let announcementIds: number[];
  let sendAt: Date;

  /** Leaves a message to be sent tomorrow, and an announcement to be sent soon. */
  async function leaveMessages(database: pg.Client): Promise<void> {
    announcementIds = [];
    for (let i = 0; i < 2; i++) {
      const input = { title: 'Closed on Monday', text: 'We are back on Tuesday.' };
      const { body } = await store.post<{ id: number }>(`${store.store}/announcements`, input);
      announcementIds.push(body.id);
    }
    const [sendingId, scheduledId] = announcementIds;
    await database.query(
      `update campaigns set state = 'sending', is_addressed = true, due_at = now() + interval '1 day' where id = $1`,
      [sendingId],
    );
    await database.query(
      `insert into outgoing_messages (kind, account_id, announcement_id, customer_id, state, channel, due_at, give_up_at)
       select 'campaign', account_id, $1, id, 'queued', 'email', now() + interval '1 day', now() + interval '2 days' from customers limit 1`,
      [sendingId],
    );
    sendAt = new Date(Date.now() + 15_000);
    const scheduled = `${store.store}/announcements/${scheduledId}/send`;
    const { status } = await store.post(scheduled, { send_at: sendAt.toISOString() });
    expect(status).toBe(200);
  }

  it(
    'back up a service while it adds stamps',
    async () => {
      const early = startStamping('before');
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
      deliveredIds = receiver.events.map(getEventId);
      await leaveMessages(database);
      // Keeps the announcement from being sent before it is backed up.
      await database.query('begin');
      await database.query('select from campaigns where id = $1 for update', [announcementIds[1]]);

      const meanwhile = startStamping('meanwhile');
      const program = startProgram(BACKUP, settings(first), [backup]);
      expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
      await database.end();
      const all = await meanwhile.stop();
      expect(all.length).toBeGreaterThan(0);
      expect(program.output()).toContain(`keep a copy of ${join(first, 'master.key')} elsewhere`);
    },
    SLOW,
  );

  it('write no name, token or key into the backup in clear', () => {
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

  it('refuse a folder that exists, and leave the backup in it as it is', () => {
    const manifest = readFileSync(join(backup, 'manifest.json'));
    expect(run(BACKUP, [backup], settings(first))).toEqual({
      status: 1,
      output: expect.stringContaining(`${backup} already exists. Choose a new folder.\n`),
    });
    expect(readFileSync(join(backup, 'manifest.json')).equals(manifest)).toBe(true);
    expect(run(BACKUP, ['--check', backup], settings(first)).status).toBe(0);
  });

  it('refuse to restore without the backup’s master key, and create no data folder', () => {
    const target = join(files, 'other key');
    const otherKey = randomBytes(32).toString('base64');
    for (const key of ['', otherKey]) {
      const failure = run('apps/cli/inkpad.cjs', ['restore', backup], {
        ...settings(target),
        MASTER_KEY: key,
      });
      expect(failure.status).toBe(1);
      expect(failure.output).toMatch(
        /This backup can be opened with the master key [0-9a-f]{8} alone/,
      );
      expect(existsSync(target)).toBe(false);
    }
  });

  it.each([
    [
      'a backup without one of its files',
      (folder: string) => rmSync(join(folder, 'es.events.sealed')),
    ],
    [
      'a backup with a changed bit in a file',
      (folder: string) => {
        const file = join(folder, 'public.customers.sealed');
        const content = readFileSync(file);
        content[20] = (content[20] ?? 0) ^ 1;
        writeFileSync(file, content);
      },
    ],
    [
      'a backup with a changed manifest',
      (folder: string) => {
        const file = join(folder, 'manifest.json');
        const manifest = JSON.parse(readFileSync(file, 'utf8')) as { tables: { name: string }[] };
        manifest.tables = manifest.tables.filter(({ name }) => name !== 'public.audit_log');
        writeFileSync(file, JSON.stringify(manifest));
      },
    ],
    ['a backup without a manifest', (folder: string) => rmSync(join(folder, 'manifest.json'))],
  ])('refuse to restore %s, and create no data folder', (what, change) => {
    const [damaged, target] = [join(files, what), join(files, `into ${what}`)];
    cpSync(backup, damaged, { recursive: true });
    change(damaged);
    const failure = run('apps/cli/inkpad.cjs', ['restore', damaged], {
      ...settings(target),
      MASTER_KEY_FILE: join(first, 'master.key'),
    });
    expect(failure.status).toBe(1);
    expect(failure.output).toMatch(/missing|not what was backed up|was changed/);
    expect(existsSync(target)).toBe(false);
  });

  it(
    'refuse to restore into the data folder of a running service',
    () => {
      const failure = run('apps/cli/inkpad.cjs', ['restore', backup], settings(first));
      expect(failure.status).toBe(1);
      expect(failure.output).toContain(`Inkpad is running on ${first}`);
    },
    SLOW,
  );

  it(
    'restore every stamp from before the backup, the token, the receipt numbers, which webhooks were delivered, and no message that waited',
    async () => {
      await Promise.all(programs.map((service) => service.kill('SIGINT')));
      await eventually(
        () => Date.now(),
        (now) => now > sendAt.getTime(),
      );
      const second = join(files, 'second');
      const restoration = run('apps/cli/inkpad.cjs', ['restore', backup], {
        ...settings(second),
        MASTER_KEY_FILE: join(first, 'master.key'),
      });
      expect([restoration.status, restoration.output]).toEqual([0, expect.any(String)]);
      expect(restoration.output).toContain('every read model matches its events');
      expect(restoration.output).toContain('erasure:repeat');
      const again = run('apps/cli/inkpad.cjs', ['restore', backup], settings(second));
      expect(again.status).toBe(1);
      expect(again.output).toMatch(/is in use[.] Restore into an empty database/);

      const from = receiver.received.length;
      await start(second);
      const local = JSON.parse(readFileSync(join(second, 'local.json'), 'utf8')) as Local;
      expect(local.api_token).toBe(store.token);
      const there = new Set(await listReferences(store));
      expect(before.filter(({ reference }) => !there.has(reference))).toEqual([]);

      // What may have been sent since is not sent again.
      const readState = async (id?: number) =>
        (await store.get<{ state: string }>(`${store.store}/announcements/${id}`)).body.state;
      expect(await readState(announcementIds[1])).toBe('cancelled');
      const recipients = `${store.store}/announcements/${announcementIds[0]}/recipients`;
      expect((await store.get<object[]>(recipients)).body).toMatchObject([
        { state: 'skipped', reason: 'past' },
      ]);

      // A receipt number from before the backup still counts once.
      const customerCard = await store.get<{ stamps_count: number }>(path);
      await store.stamp(path, { external_ref: before[0]?.reference });
      expect(await store.readBalance(path)).toBe(customerCard.body.stamps_count);

      await store.stamp(path, { external_ref: 'afterwards' });
      const webhooks = await eventually(
        () => receiver.received.slice(from),
        (received) => received.some(({ text }) => text.includes('"afterwards"')),
      );
      expect(webhooks.map(getEventId).filter((id) => deliveredIds.includes(id))).toEqual([]);
      const verification = run(VERIFY, [], settings(second));
      expect(verification.status).toBe(0);
    },
    SLOW,
  );
});

describe('killing', () => {
  let server: EmbeddedPostgres;
  let database: pg.Client;
  let environment: NodeJS.ProcessEnv;

  const createEnvironment = (convert = (url: string) => url) =>
    createTestEnvironment(convert(server.url), {
      DATABASE_MIGRATION_URL: convert(server.ownerUrl),
      MASTER_KEY: readFileSync(join(first, 'master.key'), 'utf8').trim(),
    });

  beforeAll(async () => {
    server = await startPostgres({
      dataDir: mkdtempSync(join(files, 'server-')),
      tie: true,
      settings: { fsync: 'off' },
    });
    environment = createEnvironment();
    database = new pg.Client(server.ownerUrl);
    await database.connect();
  }, SLOW);

  afterAll(async () => {
    await database.end();
    await server.remove();
  }, SLOW);

  it(
    'inkpad restore leaves a database on which no program starts, and into which it can be run again',
    async () => {
      // A migrated database that was never used counts as empty.
      expect(run('dist/apps/cli/migrate.js', [], environment).status).toBe(0);
      await database.query('begin; lock table webhook_finished in exclusive mode');
      const killed = startProgram(RESTORE, environment, [backup]);
      const waiting = () =>
        database.query(`select from pg_locks where not granted and relation is not null`);
      await eventually(waiting, ({ rowCount }) => rowCount !== 0);
      await killed.kill('SIGKILL');
      await database.query('rollback');
      const message =
        'A restore into this database was not finished: run inkpad restore again, or begin with a new database.';
      for (const program of [
        'dist/apps/cli/migrate.js',
        'dist/apps/api/main.js',
        'dist/apps/dispatcher/main.js',
      ]) {
        const failure = run(program, [], environment);
        const code = program.includes('/main.js') ? 78 : 1;
        expect([program, failure.status]).toEqual([program, code]);
        expect(failure.output).toContain(message);
      }

      // The killed program's connection may outlive it for a moment.
      await eventually(
        () => database.query(`select from pg_stat_activity where application_name like 'inkpad %'`),
        ({ rowCount }) => rowCount === 0,
      );
      // A restore that cannot write the files of the data folder is undone as a whole.
      const dataDir = mkdtempSync(join(files, 'data-'));
      symlinkSync(join(dataDir, 'nowhere', 'local.json'), join(dataDir, 'local.json'));
      const failure = run(RESTORE, [backup], { ...environment, DATA_DIR: dataDir });
      expect([failure.status, failure.output]).toEqual([1, expect.stringContaining('EEXIST')]);
      const again = run(RESTORE, [backup], environment);
      expect([again.status, again.output]).toEqual([0, expect.any(String)]);
      // Ids given out after the backup are not given out again, whatever they belong to.
      const { rows: sequences } = await database.query<{ name: string; free: number }>(
        `select sequencename as name, (last_value - start_value)::int as free from pg_sequences
         where schemaname = 'public' and sequencename ~ '_id(_seq)?$'`,
      );
      expect(sequences.length).toBeGreaterThan(10);
      expect(sequences.filter(({ free }) => free < 100_000)).toEqual([]);
      expect(run(VERIFY, [], environment).status).toBe(0);
    },
    SLOW,
  );

  it(
    'inkpad restore leaves no process behind',
    async () => {
      const [folder, target] = [mkdtempSync(join(files, 'left-')), join(files, 'left-target')];
      cpSync(backup, folder, { recursive: true });
      const killed = startProgram(
        'apps/cli/inkpad.cjs',
        {
          ...settings(target),
          MASTER_KEY_FILE: join(first, 'master.key'),
        },
        ['restore', folder],
      );
      const listOwn = () =>
        listProcesses().filter(
          ({ command }) => command.includes(folder) || command.includes(target),
        );
      await eventually(listOwn, (processes) => processes.length > 1);
      await killed.kill('SIGKILL');
      await eventually(listOwn, (processes) => processes.length === 0);
    },
    SLOW,
  );

  it(
    'inkpad restore leaves no verification behind',
    async () => {
      await database.query('create database verified');
      const inOther = (url: string) => Object.assign(new URL(url), { pathname: '/verified' }).href;
      const killed = startProgram(RESTORE, createEnvironment(inOther), [backup]);
      // Started by a restore, it has its whole path.
      const listVerifications = () =>
        listProcesses().filter(({ command }) => command.includes(resolve(VERIFY)));
      // Tests that run beside this one may have verifications of their own.
      await eventually(killed.output, (output) => output.endsWith('verifying …\n'));
      await eventually(listVerifications, (processes) => processes.length > 0);
      await killed.kill('SIGKILL');
      await eventually(listVerifications, (processes) => processes.length === 0);
      await eventually(
        () => database.query(`select from pg_stat_activity where datname = 'verified'`),
        ({ rowCount }) => rowCount === 0,
      );
    },
    SLOW,
  );

  it(
    'inkpad backup leaves no folder under the backup’s name, and it can be run again',
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
