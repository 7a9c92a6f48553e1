import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { getKeyId, createMasterKey } from '#platform/kernel/keyring.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { OutgoingMessages } from '#outbound/messages/outgoing-messages.service.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { Client, startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const CLI = 'dist/apps/cli/cli.js';
const API = 'dist/apps/api/main.js';
const OLD = Buffer.alloc(32, 7);
const NEW = Buffer.alloc(32, 8);
const toKeyId = (key: Buffer) => getKeyId(createMasterKey(key).fingerprint);
const toBase64 = (key: Buffer) => key.toString('base64');

const ONLY_OLD = { MASTER_KEY: toBase64(OLD) };
const BOTH = { MASTER_KEY: toBase64(NEW), MASTER_KEY_PREVIOUS: toBase64(OLD) };
const ONLY_NEW = { MASTER_KEY: toBase64(NEW) };

type Keys = { MASTER_KEY?: string; MASTER_KEY_PREVIOUS?: string };

/** Creates a database on which services can be started. */
async function createInstallation() {
  const database = await createTestDatabase();
  const running = new Set<Service>();
  const sharedDatabase = { ...database, close: async () => undefined };
  return {
    database,
    environment: (keys: NodeJS.ProcessEnv) => createTestEnvironment(database.url, keys),
    start: async (keys: Keys) => {
      const service = await startService(keys, sharedDatabase);
      running.add(service);
      return {
        ...service,
        stop: async () => {
          running.delete(service);
          await service.stop();
        },
      };
    },
    stop: async () => {
      for (const service of running) await service.stop();
      await database.close();
    },
  };
}

let installation: Awaited<ReturnType<typeof createInstallation>>;

async function run(file: string, environment: NodeJS.ProcessEnv, parameters: string[] = []) {
  const program = startProgram(file, environment, parameters);
  return { code: await program.exitCode, output: program.output() };
}

const rotate = (keys: Keys) => run(CLI, installation.environment(keys), ['key:rotate']);

/** Finds the ids of the keys that have sealed something in this column. */
async function findKeyIds({ query }: TestDatabase, table: string, column: string) {
  const { rows } = await query<{ id: string }>(
    `select distinct encode(substring(${column} from 5 for 4), 'hex') as id
     from ${table} where ${column} is not null order by 1`,
  );
  return rows.map(({ id }) => id);
}

describe('the master key of a database', () => {
  beforeAll(async () => {
    installation = await createInstallation();
    const service = await installation.start(ONLY_OLD);
    await enrol(await service.newStore());
    await service.stop();
  });
  afterAll(() => installation.stop());

  it.each([
    ['api', API, [], 78],
    ['dispatcher', 'dist/apps/dispatcher/main.js', [], 78],
    ['cli', CLI, ['user:create', '--email', 'wrong@shop.example', '--name', 'Wrong'], 1],
    ['verify', 'dist/apps/cli/verify.js', [], 1],
  ])('is checked by the %s, which refuses another key', async (_, file, parameters, end) => {
    const { code, output } = await run(file, installation.environment(ONLY_NEW), parameters);
    expect(output.trim()).toMatch(
      /^MASTER_KEY is not the key of this database \([0-9a-f]{8}, not [0-9a-f]{8}\): set MASTER_KEY to the key that was used until now .*\.$/,
    );
    expect(code).toBe(end);
  });

  it('is not replaced by a key that is generated when MASTER_KEY is not set', async () => {
    const environment = installation.environment({ MASTER_KEY: '' });
    const file = join(environment['DATA_DIR'] ?? '', 'master.key');
    const first = await run(API, environment);
    expect(first.output).toContain(
      `The master key that was just made, since MASTER_KEY is not set and ${file} did not exist, is not the key of this database`,
    );
    const again = await run(CLI, environment, ['store:list']);
    expect(again.output).toContain(`The master key in ${file} is not the key of this database`);
    expect([first.code, again.code]).toEqual([78, 1]);
  });

  it('is read from the file that MASTER_KEY_FILE names', async () => {
    const environment = installation.environment({ MASTER_KEY: '', DATABASE_URL: '' });
    const folder = environment['DATA_DIR'] ?? '';
    writeFileSync(join(folder, 'key'), `${toBase64(OLD)}\n`);
    writeFileSync(join(folder, 'database'), installation.database.url);
    const { code, output } = await run(
      CLI,
      {
        ...environment,
        MASTER_KEY_FILE: join(folder, 'key'),
        DATABASE_URL_FILE: join(folder, 'database'),
      },
      ['user:create', '--email', 'file@shop.example', '--name', 'File'],
    );
    expect(output).toContain('"email":"file@shop.example"');
    expect(code).toBe(0);
  });

  it('is named by its id in everything that it has sealed', async () => {
    expect(await findKeyIds(installation.database, 'personal_keys', 'wrapped')).toEqual([
      toKeyId(OLD),
    ]);
    expect(await findKeyIds(installation.database, 'data_keys', 'sealed')).toEqual([toKeyId(OLD)]);
  });
});

describe('the rotation of the master key', () => {
  beforeAll(async () => {
    installation = await createInstallation();
  });
  afterAll(() => installation.stop());
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  it('refuses to start without both keys', async () => {
    const { code, output } = await rotate(ONLY_OLD);
    expect(output.trim()).toMatch(/^Set MASTER_KEY to the new key .* then run this again\.$/);
    expect(code).toBe(1);
  });

  it('refuses to start while a process has only the former key', async () => {
    const service = await installation.start(ONLY_OLD);
    stops.push(service.stop);
    const { code, output } = await rotate(BOTH);
    expect(output).toMatch(/^These processes do not have the new key [0-9a-f]{8} yet: inkpad api /);
    expect(code).toBe(1);
    expect(await findKeyIds(installation.database, 'data_keys', 'sealed')).toEqual([toKeyId(OLD)]);
  });

  /**
   * only the old key: a customer, a receipt, a stamp with a key, a subscription, a pending mail
   * both keys, before the rotation: still sealed with the old one, so that processes without the new one can open it
   * key:rotate while customers are created
   * only the new key: everything is found, opened and refused as before
   */
  it('seals everything with the new key while customers are created, and keeps claims, stored responses and mails usable', async () => {
    const { database } = installation;
    const first = await installation.start(ONLY_OLD);
    const store = await first.newStore();
    const { path } = await enrol(store, { email: 'ann@example.com' });
    const receipt = { stamps: 2, external_ref: `till-${randomUUID()}` };
    const once = { 'idempotency-key': randomUUID() };
    const firstResponse = await store.send('POST', `${path}/stamp`, receipt, once);
    const subscription = await store.post<{ id: number; secret: string }>(
      `${store.store}/webhook_subscriptions`,
      { events: ['*'], target_url: 'https://hooks.example/in' },
    );
    const mailId = randomUUID();
    const mail = { to: 'ann@example.com', subject: 'Link', text: 'https://cards.example/app' };
    const sealed = first.app
      .get(MasterKeys, { strict: false })
      .seal('mails', Buffer.from(JSON.stringify(mail)), `mail ${mailId}`);
    await database.query(
      `insert into outgoing_messages (kind, uuid, account_id, channel, sealed, due_at, give_up_at)
       values ('mail', $1, 0, 'email', $2, now(), now() + interval '1 day')`,
      [mailId, sealed],
    );
    await first.stop();

    const both = await installation.start(BOTH);
    const client = new Client(both.baseUrl, store.accountId, store.token);
    await enrol(client, { email: 'bob@example.com' });
    expect(await findKeyIds(database, 'personal_keys', 'wrapped')).toEqual([toKeyId(OLD)]);

    let createdCount = 0;
    let isRotating = true;
    const creations = (async () => {
      while (isRotating) {
        const customer = { first_name: 'Anna', email: `c${createdCount}@example.com` };
        const response = await client.post(`${client.store}/customers`, { customer });
        expect(response.status).toBe(201);
        createdCount++;
        const twice = await client.post(`${client.store}/customers`, {
          customer: { first_name: 'Ann', email: 'ANN@example.com' },
        });
        expect(twice.status).toBe(422);
      }
    })();
    await eventually(
      async () => createdCount,
      (count) => count > 0,
    );
    const { code, output } = await rotate(BOTH);
    isRotating = false;
    await creations;
    expect(output).toMatch(/personal keys: \d+ of \d+/);
    expect(output).toContain('done: remove MASTER_KEY_PREVIOUS');
    expect(code).toBe(0);
    await both.stop();

    for (const [table, column] of [
      ['personal_keys', 'wrapped'],
      ['data_keys', 'sealed'],
      ['webhook_subscriptions', 'secret'],
      ['es.stored_responses', 'response'],
      ['outgoing_messages', 'sealed'],
    ] as const) {
      expect([table, await findKeyIds(database, table, column)]).toEqual([table, [toKeyId(NEW)]]);
    }
    const { rows: auditEntries } = await database.query(
      `select actor ->> 'name' as name, subject ->> 'key' as key from audit_log
       where type = 'master_key.rotated'`,
    );
    expect(auditEntries).toEqual([{ name: userInfo().username, key: toKeyId(NEW) }]);
    const apiRun = await run(API, installation.environment(ONLY_OLD));
    expect(apiRun.output).toContain('MASTER_KEY is not the key of this database');

    const last = await installation.start(ONLY_NEW);
    stops.push(last.stop);
    const outbox = last.app.get(MailOutbox, { strict: false });
    const queue = last.app.get(OutgoingMessages, { strict: false });
    const [queued] = await queue.claim(1, 'mail', 'email');
    expect(queued?.uuid).toBe(mailId);
    expect(queued && outbox.open(queued)).toMatchObject(mail);
    const till = new Client(last.baseUrl, store.accountId, store.token);
    const again = await till.send('POST', `${path}/stamp`, receipt, once);
    expect([again.status, again.text]).toEqual([200, firstResponse.text]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const unkeyed = await till.post<{ stamps_count: number }>(`${path}/stamp`, receipt);
    expect(unkeyed.body).toEqual(firstResponse.body);
    for (const email of ['ann@example.com', 'bob@example.com', 'c0@example.com']) {
      const rejection = await till.post<{ errors: object }>(`${till.store}/customers`, {
        customer: { first_name: 'Ann', email },
      });
      expect(Object.keys(rejection.body.errors)).toEqual(['email']);
    }
    const shownSubscription = await till.get<{ secret: string }>(
      `${till.store}/webhook_subscriptions/${subscription.body.id}`,
    );
    expect(shownSubscription.body.secret).toBe(subscription.body.secret);
    const keys = last.app.get(PersonalKeys, { strict: false });
    const { rows } = await database.query<{ id: number }>(
      'select subject_id::int as id from personal_keys',
    );
    expect((await keys.load(rows.map(({ id }) => id))).size).toBe(rows.length);
    const verification = await run('dist/apps/cli/verify.js', installation.environment(ONLY_NEW));
    expect(verification.output).toContain('every read model matches its events');
  });

  it('makes the database refuse what is sealed with the former key afterwards', async () => {
    const wrapped = Buffer.concat([
      Buffer.from('ink\u0001'),
      Buffer.from(toKeyId(OLD), 'hex'),
      Buffer.alloc(60),
    ]);
    await expect(
      installation.database.query(
        'insert into personal_keys (subject_id, wrapped) values (500000, $1)',
        [wrapped],
      ),
    ).rejects.toThrow('sealed with a master key that has been rotated out');
  });

  /** The first run is killed; a service with both keys continues; the second run does the rest. */
  it('continues where it was killed', async () => {
    const NEXT = Buffer.alloc(32, 9);
    const keys = { MASTER_KEY: toBase64(NEXT), MASTER_KEY_PREVIOUS: toBase64(NEW) };
    const service = await installation.start(keys);
    stops.push(service.stop);
    const personal = service.app.get(PersonalKeys, { strict: false });
    for (let id = 600_000; id < 601_200; id += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, i) => personal.create(id + i, 'customers')),
      );
    }
    const program = startProgram(CLI, installation.environment(keys), ['key:rotate']);
    await eventually(
      async () => program.output(),
      (output) => output.includes('personal keys: 500 of'),
    );
    await program.kill('SIGKILL');
    const ids = await findKeyIds(installation.database, 'personal_keys', 'wrapped');
    expect(ids).toContain(toKeyId(NEXT));
    const { rows } = await installation.database.query<{ all: number }>(
      'select count(*)::int as all from personal_keys',
    );
    expect(
      (await run(API, installation.environment({ MASTER_KEY: toBase64(NEXT) }))).output,
    ).toMatch(/^The master key of this database is being changed: set MASTER_KEY_PREVIOUS/);
    const { code, output } = await rotate(keys);
    expect(code).toBe(0);
    const remainingCount = Number(/personal keys: \d+ of (\d+)/.exec(output)?.[1] ?? 0);
    expect(remainingCount).toBeGreaterThan(0);
    expect(remainingCount).toBeLessThanOrEqual((rows[0]?.all ?? 0) - 500);
    expect(await findKeyIds(installation.database, 'personal_keys', 'wrapped')).toEqual([
      toKeyId(NEXT),
    ]);
  });

  it('sees the key of an api in the names of its connections', async () => {
    // The names of connections show the id of the key alone.
    const port = await findFreePort();
    const NEXT = Buffer.alloc(32, 9);
    const program = startProgram(
      API,
      installation.environment({ MASTER_KEY: toBase64(NEXT), PORT: String(port) }),
    );
    stops.push(() => program.kill('SIGTERM'));
    const { rows } = await eventually(
      () =>
        installation.database.query<{ name: string }>(
          `select distinct application_name as name from pg_stat_activity
           where datname = current_database() and application_name like 'inkpad api%'`,
        ),
      (result) => result.rows.length > 0,
    );
    expect(rows[0]?.name).toMatch(
      new RegExp(`^inkpad api [0-9a-f]{8} (link )?key ${toKeyId(NEXT)}$`),
    );
  });
});
