import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import type { ErrorJson } from '#platform/http/error-response.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { Client, startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/**
 * Runs Inkpad as a user that is no administrator: an administrator's command creates and grants it, api and dispatcher
 * connect as that user, and it cannot delete anything.
 */

const SLOW = 300_000;
const PASSWORDS = { admin: 'the key to it all', inkpad: 'a/b:c@d?e' };

let server: EventStoreDb;
let authority: string;
let service: Service;
const webhooks = useWebhooks(() => service);

beforeAll(async () => {
  const tls = selfSigned();
  authority = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'ca.crt');
  writeFileSync(authority, tls.cert);
  server = await startEventStoreDb({ tls, users: { admin: PASSWORDS.admin } });
}, SLOW);
afterAll(async () => {
  await service.stop();
  await server.stop();
}, SLOW);

const createUrl = (name: string, password: string) =>
  `esdb://${name}:${encodeURIComponent(password)}@localhost:${server.port}?tlsCAFile=${authority}`;

/** Changes a password on the server, as an administrator does. */
async function resetPassword(name: string, newPassword: string): Promise<void> {
  const agent = new Agent({ connect: { ca: readFileSync(authority) } });
  const { statusCode } = await request(
    `https://localhost:${server.port}/users/${name}/command/reset-password`,
    {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`admin:${PASSWORDS.admin}`).toString('base64')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ newPassword }),
      dispatcher: agent,
    },
  );
  await agent.close();
  expect(statusCode).toBe(200);
}

async function runAccess(environment: NodeJS.ProcessEnv): Promise<[number | null, string]> {
  const run = startProgram('dist/apps/cli/event-store-access.js', {
    EVENT_STORE_ADMIN_URL: createUrl('admin', PASSWORDS.admin),
    EVENT_STORE_URL: createUrl('inkpad', PASSWORDS.inkpad),
    ...environment,
  });
  return [await run.exitCode, run.output().trim()];
}

describe('inkpad event-store-access', () => {
  it('refuses URLs that are missing, wrong or those of an administrator, in one sentence', async () => {
    expect(await runAccess({ EVENT_STORE_ADMIN_URL: undefined })).toEqual([
      1,
      expect.stringMatching(/^EVENT_STORE_ADMIN_URL must be set: .*$/),
    ]);
    expect(await runAccess({ EVENT_STORE_URL: undefined })).toEqual([
      1,
      'EVENT_STORE_URL must name a user and a password: kurrentdb://name:password@host',
    ]);
    for (const setting of ['EVENT_STORE_URL', 'EVENT_STORE_ADMIN_URL']) {
      expect(await runAccess({ [setting]: 'kurrentdb://inkpad:12/34@localhost' })).toEqual([
        1,
        `${setting}: must have %40, %2F and the like for special characters of name and password`,
      ]);
    }
    expect(await runAccess({ EVENT_STORE_URL: createUrl('admin', PASSWORDS.admin) })).toEqual([
      1,
      'EVENT_STORE_URL names the administrator admin: choose a user that only Inkpad uses.',
    ]);
    expect(await runAccess({ EVENT_STORE_ADMIN_URL: createUrl('admin', 'wrong') })).toEqual([
      1,
      'KurrentDB (EventStoreDB) cannot create the user inkpad at EVENT_STORE_ADMIN_URL: access denied',
    ]);
    expect(
      await runAccess({ EVENT_STORE_ADMIN_URL: `esdb://a:b@localhost:${server.port}?tls=false` }),
    ).toEqual([1, 'EVENT_STORE_ADMIN_URL: the server has no users without TLS.']);
    expect(
      await runAccess({
        EVENT_STORE_ADMIN_URL: `esdb://a:b@localhost:1,localhost:2?tlsCAFile=${authority}`,
      }),
    ).toEqual([
      1,
      expect.stringMatching(
        /^KurrentDB \(EventStoreDB\) cannot be reached at EVENT_STORE_ADMIN_URL: .*$/,
      ),
    ]);
    expect(server.appended).toBe(0);
  });

  it('creates the user of EVENT_STORE_URL and grants it access, and a second run changes nothing', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'admin-url');
    writeFileSync(file, `${createUrl('admin', PASSWORDS.admin)}\n`);
    const success = [0, expect.stringMatching(/^inkpad may read \$all/)];
    expect(
      await runAccess({ EVENT_STORE_ADMIN_URL: undefined, EVENT_STORE_ADMIN_URL_FILE: file }),
    ).toEqual(success);
    expect(server.appended).toBe(2);
    expect(await runAccess({})).toEqual(success);
    expect(server.appended).toBe(2);
  });

  it('refuses another password for an existing user', async () => {
    expect(await runAccess({ EVENT_STORE_URL: createUrl('inkpad', 'another') })).toEqual([
      1,
      'KurrentDB (EventStoreDB) has a user inkpad with another password: correct EVENT_STORE_URL, or have an administrator reset it there.',
    ]);
  });

  it(
    'creates a user with which stamps and webhooks work',
    async () => {
      service = await startService({
        EVENT_STORE_URL: createUrl('inkpad', PASSWORDS.inkpad),
        WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
      });
      const store = await service.newStore();
      const receiver = await webhooks.receive();
      await subscribe(store, receiver);
      const { path } = await enrol(store);
      await webhooks.startDispatcher();
      await stamp(store, path);
      await eventually(
        () => receiver.events.length,
        (count) => count === 1,
      );
    },
    SLOW,
  );

  it(
    'creates a second user that takes over without a gap, before the password of the first is changed',
    async () => {
      const second = createUrl('inkpad2', 'another/password');
      expect(await runAccess({ EVENT_STORE_URL: second })).toEqual([
        0,
        expect.stringMatching(/^inkpad2 may read \$all/),
      ]);
      const store = await service.newStore();
      const { path } = await enrol(store);
      const database = { ...service.database, close: async () => undefined };
      const api = await startService({ EVENT_STORE_URL: second }, database);
      try {
        expect((await store.stamp(path)).status).toBe(200);
        await resetPassword('inkpad', 'changed');
        const client = new Client(api.baseUrl, store.accountId, store.token);
        expect((await client.stamp(path)).status).toBe(200);
        const readParts = async ({ baseUrl }: Service) =>
          (await (await fetch(`${baseUrl}/health/ready`)).json()) as { checks?: object };
        // The former user's appends go over a call that began before; its reads need the new password.
        const { checks } = await eventually(
          () => readParts(service),
          (health) => health.checks !== undefined,
        );
        expect(checks).toMatchObject({ event_store: 'unavailable' });
        expect((await store.stamp(path)).status).toBe(200);
        expect(await readParts(api)).toEqual({ status: 'ok' });
      } finally {
        await resetPassword('inkpad', PASSWORDS.inkpad);
        await api.stop();
      }
    },
    SLOW,
  );

  it('creates a user that may not delete, tombstone or truncate a stream', async () => {
    const attempt = async (
      work: (client: EventStoreDBClient) => Promise<unknown>,
      as = 'inkpad',
    ) => {
      const password = PASSWORDS[as as keyof typeof PASSWORDS];
      const client = EventStoreDBClient.connectionString(createUrl(as, password));
      const result = await work(client).then(
        () => 'done',
        (error: { type?: string }) => error.type,
      );
      await client.dispose();
      return result;
    };
    const [event] = await service.history();
    const stream = `inkpad_${event?.stream}`;
    expect(stream).toMatch(/^inkpad_account-\d+$/);
    expect(await attempt((client) => client.deleteStream(stream))).toBe('access-denied');
    expect(await attempt((client) => client.tombstoneStream(stream))).toBe('access-denied');
    expect(await attempt((client) => client.setStreamMetadata(stream, { truncateBefore: 1 }))).toBe(
      'access-denied',
    );
    expect(await attempt((client) => client.setStreamMetadata(stream, {}), 'admin')).toBe('done');
    expect(await attempt((client) => client.deleteStream(stream), 'admin')).toBe('done');
  });
});

describe('a stream for which an administrator has made an access list', () => {
  const VARIANTS = [
    ['reads', { readRoles: ['$admins'] }, "read it: set the stream's metadata to"],
    ['appends', { writeRoles: ['$admins'] }, 'may deny appends'],
  ] as const;

  it.each(VARIANTS)(
    'that denies %s is refused with its own words and named by verify, while others go on',
    async (denied, acl, words) => {
      const store = await service.newStore();
      const { path, customerCard } = await enrol(store);
      const otherHolder = await enrol(store);
      const name = `inkpad_customer_card-${customerCard.id}`;
      const admin = EventStoreDBClient.connectionString(createUrl('admin', PASSWORDS.admin));
      await admin.setStreamMetadata(name, { acl: acl as never });
      const refused =
        denied === 'reads'
          ? await store.get<ErrorJson>(`${path}/explain`)
          : await store.post<ErrorJson>(`${path}/stamp`, { stamps: 1 });
      expect([refused.status, refused.body.code]).toEqual([503, 'history_damaged']);
      expect((await store.stamp(otherHolder.path)).status).toBe(200);
      const environment = createTestEnvironment(service.database.url, service.environment);
      const verify = startProgram('dist/apps/cli/verify.js', environment);
      await verify.exitCode;
      expect(verify.output()).toMatch(new RegExp(`${name}: .*${words}`));
      await admin.setStreamMetadata(name, {});
      await admin.dispose();
      expect((await store.stamp(path)).status).toBe(200);
      expect((await store.get(`${path}/explain`)).status).toBe(200);
    },
    SLOW,
  );
});
