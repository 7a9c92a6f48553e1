import { EventStoreDBClient } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { stamp, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

/**
 * The whole way with a user who is no administrator: an administrator's one command creates it and says what it may do,
 * api and dispatcher connect as that user, and what is written stays.
 */

const SLOW = 120_000;
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

const urlOf = (name: string, password: string) =>
  `esdb://${name}:${encodeURIComponent(password)}@localhost:${server.port}?tlsCAFile=${authority}`;

async function access(environment: NodeJS.ProcessEnv): Promise<[number | null, string]> {
  const run = startProgram('dist/scripts/event-store-access.js', {
    EVENT_STORE_ADMIN_URL: urlOf('admin', PASSWORDS.admin),
    EVENT_STORE_URL: urlOf('inkpad', PASSWORDS.inkpad),
    ...environment,
  });
  return [await run.exitCode, run.output().trim()];
}

describe('npm run event-store-access', () => {
  it('refuses what cannot be meant, in one sentence', async () => {
    expect(await access({ EVENT_STORE_ADMIN_URL: undefined })).toEqual([
      1,
      expect.stringMatching(/^EVENT_STORE_ADMIN_URL must be set: .*$/),
    ]);
    expect(await access({ EVENT_STORE_URL: undefined })).toEqual([
      1,
      'EVENT_STORE_URL must name a user and a password: esdb://name:password@host',
    ]);
    expect(await access({ EVENT_STORE_URL: urlOf('admin', PASSWORDS.admin) })).toEqual([
      1,
      'EVENT_STORE_URL names the administrator admin: choose a user that only Inkpad uses.',
    ]);
    expect(await access({ EVENT_STORE_ADMIN_URL: urlOf('admin', 'wrong') })).toEqual([
      1,
      'EventStoreDB cannot create the user inkpad at EVENT_STORE_ADMIN_URL: access denied',
    ]);
    expect(
      await access({ EVENT_STORE_ADMIN_URL: `esdb://a:b@localhost:${server.port}?tls=false` }),
    ).toEqual([1, 'EVENT_STORE_ADMIN_URL: EventStoreDB has no users without TLS.']);
    expect(
      await access({
        EVENT_STORE_ADMIN_URL: `esdb://a:b@localhost:1,localhost:2?tlsCAFile=${authority}`,
      }),
    ).toEqual([
      1,
      expect.stringMatching(/^EventStoreDB cannot be reached at EVENT_STORE_ADMIN_URL: .*$/),
    ]);
    expect(server.appended).toBe(0);
  });

  it('creates the user of EVENT_STORE_URL and grants it, and a second run changes nothing', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'admin-url');
    writeFileSync(file, `${urlOf('admin', PASSWORDS.admin)}\n`);
    const done = [0, expect.stringMatching(/^inkpad may read \$all/)];
    expect(
      await access({ EVENT_STORE_ADMIN_URL: undefined, EVENT_STORE_ADMIN_URL_FILE: file }),
    ).toEqual(done);
    expect(server.appended).toBe(2);
    expect(await access({})).toEqual(done);
    expect(server.appended).toBe(2);
  });

  it('leaves the password of a user that exists as it is', async () => {
    expect(await access({ EVENT_STORE_URL: urlOf('inkpad', 'another') })).toEqual([
      1,
      'EventStoreDB has a user inkpad with another password: correct EVENT_STORE_URL, or have an administrator reset it there.',
    ]);
  });

  it(
    'makes a user with which a stamp is counted and its webhook leaves',
    async () => {
      service = await startService({
        EVENT_STORE_URL: urlOf('inkpad', PASSWORDS.inkpad),
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

  it('makes a user that deletes, empties and truncates nothing', async () => {
    const tried = async (work: (client: EventStoreDBClient) => Promise<unknown>, as = 'inkpad') => {
      const password = PASSWORDS[as as keyof typeof PASSWORDS];
      const client = EventStoreDBClient.connectionString(urlOf(as, password));
      const answer = await work(client).then(
        () => 'done',
        (error: { type?: string }) => error.type,
      );
      await client.dispose();
      return answer;
    };
    const [event] = await service.history();
    const stream = `${event?.stream}`;
    expect(stream).toMatch(/^account-\d+$/);
    expect(await tried((client) => client.deleteStream(stream))).toBe('access-denied');
    expect(await tried((client) => client.tombstoneStream(stream))).toBe('access-denied');
    expect(await tried((client) => client.setStreamMetadata(stream, { truncateBefore: 1 }))).toBe(
      'access-denied',
    );
    expect(await tried((client) => client.setStreamMetadata(stream, {}), 'admin')).toBe('done');
    // The emulator deletes nothing for anybody, but says so differently to whom it would let.
    expect(await tried((client) => client.deleteStream(stream), 'admin')).toBe('unknown');
  });
});
