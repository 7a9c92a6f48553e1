import { EventStoreDBClient, jsonEvent, type JSONType } from '@eventstore/db-client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '#platform/kernel/config-error.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { startService, type Service } from '../support/services/service.js';
import { openStore } from '../support/database/event-store.js';

/** An event store that belongs to another database, or refuses the connection, ends the start with one sentence. */

const SLOW = 300_000;

let server: EventStoreDb;
let service: Service;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  await service.newStore();
}, SLOW);
afterAll(async () => {
  await service.stop();
  await server.stop();
}, SLOW);

/** Opens the event store as a process does when it starts. @returns 'started', or the message of the failure */
async function start(
  database: TestDatabase,
  EVENT_STORE_URL: string | undefined,
  EVENT_STORE_STREAM_PREFIX = 'inkpad_',
): Promise<string> {
  const environment = { EVENT_STORE_URL, EVENT_STORE_STREAM_PREFIX };
  const opened = await openStore(testConfig(database.url, environment));
  try {
    await opened.store.onModuleInit();
    return 'started';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  } finally {
    await opened.close();
  }
}

async function getLink(database: TestDatabase): Promise<{ database: string; linked: boolean }> {
  const { rows } = await database.query<{ database: string; linked: boolean }>(
    'select database, linked_at is not null as linked from es.identity',
  );
  if (!rows[0]) throw new Error('no identity');
  return rows[0];
}

async function withClient<R>(work: (client: EventStoreDBClient) => Promise<R>): Promise<R> {
  const client = EventStoreDBClient.connectionString(server.connectionString);
  try {
    return await work(client);
  } finally {
    await client.dispose();
  }
}

const readLinks = (streamName: string) =>
  withClient(async (client) => {
    const ids: unknown[] = [];
    for await (const { event } of client.readStream(streamName)) ids.push(event?.data);
    return ids;
  });

describe('an event store and its database', () => {
  it('are linked by the first start, and accepted by a later one', async () => {
    const { database, linked } = await getLink(service.database);
    expect(linked).toBe(true);
    expect(await readLinks('inkpad_inkpad_identity')).toEqual([{ database }]);
    expect(await start(service.database, server.connectionString)).toBe('started');
    expect(await readLinks('inkpad_inkpad_identity')).toEqual([{ database }]);
  });

  it('are linked once when four processes start at the same time', async () => {
    const database = await createTestDatabase();
    const prefix = 'together_';
    const environment = {
      EVENT_STORE_URL: server.connectionString,
      EVENT_STORE_STREAM_PREFIX: prefix,
    };
    const config = testConfig(database.url, environment);
    const opened = await Promise.all(Array.from({ length: 4 }, () => openStore(config)));
    // Closed together afterwards: clients of one process share a list of pending appends, which each clears as it ends.
    try {
      await Promise.all(opened.map(({ store }) => store.onModuleInit()));
      expect(await readLinks(`${prefix}inkpad_identity`)).toHaveLength(1);
    } finally {
      await Promise.all(opened.map(({ close }) => close()));
    }
    await database.close();
  });

  it('are linked by the next start when a process died halfway through linking them', async () => {
    const database = await createTestDatabase();
    expect(await start(database, server.connectionString, 'died_')).toBe('started');
    await database.query('update es.identity set linked_at = null');
    expect(await start(database, server.connectionString, 'died_')).toBe('started');
    expect(await getLink(database)).toMatchObject({ linked: true });
    await database.close();
  });
});

describe('a process refuses to start', () => {
  it('with an empty event store, and with another stream prefix', async () => {
    const otherServer = await startEventStoreDb();
    expect(await start(service.database, otherServer.connectionString)).toMatch(
      /^KurrentDB \(streams inkpad_\*\) lacks the history of this database: set EVENT_STORE_URL .*$/,
    );
    expect(await start(service.database, server.connectionString, 'typo_')).toMatch(
      /^KurrentDB \(streams typo_\*\) lacks the history of this database: .*$/,
    );
    await otherServer.stop();
  });

  it('with an empty database and an event store that has a history', async () => {
    const database = await createTestDatabase();
    expect(await start(database, server.connectionString)).toMatch(
      /^The database is empty, and KurrentDB \(streams inkpad_\*\) holds a history already: .*$/,
    );
    await database.close();
  });

  it('with an event store that has the history of another database', async () => {
    const otherService = await startService({
      EVENT_STORE_URL: server.connectionString,
      EVENT_STORE_STREAM_PREFIX: 'another_',
    });
    await otherService.newStore();
    expect(await start(otherService.database, server.connectionString)).toMatch(
      /^KurrentDB \(streams inkpad_\*\) holds the history of another database: .*$/,
    );
    expect(await start(service.database, server.connectionString, 'another_')).toMatch(
      /^KurrentDB \(streams another_\*\) holds the history of another database: .*$/,
    );
    await otherService.stop();
  });

  it('with a history that is linked to no database', async () => {
    await withClient(async (client) => {
      const { rows } = await service.database.query<{ id: number }>(
        'select min(id) as id from accounts',
      );
      const name = `account-${rows[0]?.id}`;
      for await (const { event } of client.readStream(`inkpad_${name}`, { maxCount: 1 })) {
        if (!event) throw new Error(`${name} is empty`);
        const { type, data, metadata } = event;
        await client.appendToStream(
          `nameless_${name}`,
          jsonEvent({ type, data: data as JSONType, metadata: metadata as object }),
        );
      }
    });
    await service.database.query('update es.identity set linked_at = null');
    expect(await start(service.database, server.connectionString, 'nameless_')).toMatch(
      /^KurrentDB \(streams nameless_\*\) holds the history of another database: /,
    );
    expect(await start(service.database, server.connectionString)).toBe('started');
  });

  it('with PostgreSQL as the event store when the history is in EventStoreDB', async () => {
    const environment = createTestEnvironment(service.database.url, { EVENT_STORE_URL: '' });
    const api = startProgram('dist/apps/api/main.js', environment);
    expect(await api.exitCode).toBe(78);
    expect(api.output().trim()).toMatch(
      /^The history of this database is in KurrentDB \(EventStoreDB\): .*$/,
    );
  });

  it(
    'as inkpad verify with another stream prefix, and says why in one sentence',
    async () => {
      const environment = createTestEnvironment(service.database.url, {
        EVENT_STORE_URL: server.connectionString,
        EVENT_STORE_STREAM_PREFIX: 'typo_',
      });
      const verify = startProgram('dist/apps/cli/verify.js', environment);
      expect(await verify.exitCode).toBe(1);
      expect(verify.output().trim()).toMatch(/^KurrentDB \(streams typo_\*\) lacks .*$/);
    },
    SLOW,
  );
});

describe('an event store that was unavailable when a process started', () => {
  it(
    'is checked once it is available, and not used if it belongs to another database',
    async () => {
      const database = await createTestDatabase();
      const port = await findFreePort();
      const late = { EVENT_STORE_URL: `esdb://127.0.0.1:${port}?tls=false` };
      const waiting = await openStore(testConfig(database.url, late));
      await waiting.store.onModuleInit();
      const otherStore = await openStore(testConfig(service.database.url, late));
      await otherStore.store.onModuleInit();
      await expect(otherStore.store.head()).rejects.toThrow(UnavailableError);
      const arrived = await startEventStoreDb({ port });
      await eventually(
        () => waiting.store.head().then(() => 'ours', String),
        (result) => result === 'ours',
      );
      await eventually(
        () => otherStore.store.head().then(String, ({ message }: Error) => message),
        (message) => message === 'The event store cannot be used',
      );
      await expect(otherStore.store.head()).rejects.toMatchObject({
        message: 'The event store cannot be used',
        cause: expect.objectContaining({
          message: expect.stringMatching(/the history of another database/),
        }),
      });
      const [event] = await service.history();
      if (!event) throw new Error('a store begins with an event');
      const write = {
        stream: 'account-9',
        expected: null,
        events: [{ ...event, id: randomUUID() }],
      };
      await expect(otherStore.store.commit({ accountId: 9, writes: [write] })).rejects.toThrow(
        UnavailableError,
      );
      expect(arrived.appended).toBe(1);
      await otherStore.close();
      await waiting.close();
      await arrived.stop();
      await database.close();
    },
    SLOW,
  );
});

describe('the first start', () => {
  it(
    'waits for an event store that is not there yet, and gives up at once if it is told to',
    async () => {
      const database = await createTestDatabase();
      const port = await findFreePort();
      const settings = createTestEnvironment(database.url, {
        EVENT_STORE_URL: `esdb://127.0.0.1:${port}?tls=false`,
      });
      const hasty = startProgram('dist/apps/cli/setup.js', {
        ...settings,
        START_WAIT_SECONDS: '0',
      });
      expect(await hasty.exitCode).toBe(1);
      const absence = new RegExp(
        `^KurrentDB \\(EventStoreDB\\) at 127\\.0\\.0\\.1:${port} cannot be reached: .*\\.$`,
        'm',
      );
      expect(hasty.output()).toMatch(absence);
      const waiting = startProgram('dist/apps/cli/setup.js', settings);
      await eventually(waiting.output, (text) => text.includes(' Waiting for it.\n'));
      const arrived = await startEventStoreDb({ port });
      expect([await waiting.exitCode, waiting.output()]).toEqual([
        0,
        expect.stringContaining('"api_token"'),
      ]);
      expect(waiting.output().match(/Waiting for it/g)).toHaveLength(1);
      await arrived.stop();
      await database.close();
    },
    SLOW,
  );
});

describe('a connection string', () => {
  it(
    'that says tls=false of a server that speaks TLS is refused with what to do, and so is the opposite',
    async () => {
      const secured = await startEventStoreDb({ tls: selfSigned() });
      const database = await createTestDatabase();
      expect(await start(database, `esdb://localhost:${secured.port}?tls=false`)).toMatch(
        /^The event store at localhost:\d+ speaks TLS, and EVENT_STORE_URL says tls=false: remove that, .*$/,
      );
      expect(await start(database, `esdb://localhost:${server.port}`)).toMatch(
        /^The event store at localhost:\d+ does not speak TLS, and EVENT_STORE_URL does not say tls=false: add that, .*$/,
      );
      await database.close();
      await secured.stop();
    },
    SLOW,
  );

  it(
    'with an IP address gets no warning of Node.js, and its certificate is checked',
    async () => {
      const tls = selfSigned();
      const ca = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'ca.crt');
      writeFileSync(ca, tls.cert);
      const secured = await startEventStoreDb({ tls });
      const database = await createTestDatabase();
      const verify = (options: string) =>
        startProgram(
          'dist/apps/cli/verify.js',
          createTestEnvironment(database.url, {
            EVENT_STORE_URL: `esdb://127.0.0.1:${secured.port}${options}`,
          }),
        );
      const accepted = verify(`?tlsCAFile=${ca}`);
      expect([await accepted.exitCode, accepted.output()]).toEqual([
        0,
        expect.not.stringContaining('DEP0123'),
      ]);
      const refused = verify('');
      expect([await refused.exitCode, refused.output()]).toEqual([
        1,
        expect.stringMatching(/^The certificate of the event store is not trusted/),
      ]);
      await database.close();
      await secured.stop();
    },
    SLOW,
  );
});

describe('an EventStoreDB with users', () => {
  it(
    'refuses a wrong password and an untrusted certificate with messages that say so',
    async () => {
      const tls = selfSigned();
      const ca = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'ca.crt');
      writeFileSync(ca, tls.cert);
      const secured = await startEventStoreDb({ tls, users: { inkpad: 'secret' } });
      const database = await createTestDatabase();
      const startAs = (user: string, options: string) =>
        start(database, `esdb://${user}@localhost:${secured.port}${options}`);
      expect(await startAs('inkpad:wrong', `?tlsCAFile=${ca}`)).toBe(
        'The event store does not know the database user and password in EVENT_STORE_URL.',
      );
      expect(await startAs('inkpad:secret', '')).toMatch(
        /^The certificate of the event store is not trusted \(self-signed certificate\): name .*$/,
      );
      expect(await startAs('inkpad:secret', `?tlsCAFile=${ca}`)).toBe('started');
      await database.close();
      await secured.stop();
    },
    SLOW,
  );

  it(
    'lets in the users to whom inkpad event-store-access has granted access, and no others',
    async () => {
      const tls = selfSigned();
      const ca = join(mkdtempSync(join(tmpdir(), 'inkpad-test-')), 'ca.crt');
      writeFileSync(ca, tls.cert);
      const users = { admin: 'secret', inkpad: 'secret', other: 'secret' };
      const secured = await startEventStoreDb({ tls, users });
      const database = await createTestDatabase();
      const createUrl = (user: string) =>
        `esdb://${user}@localhost:${secured.port}?tlsCAFile=${ca}`;
      const grant = async (user: string, as = 'admin:secret') => {
        const run = startProgram(
          'dist/apps/cli/event-store-access.js',
          { EVENT_STORE_ADMIN_URL: createUrl(as) },
          ['--user', user],
        );
        return [await run.exitCode, run.output().trim()];
      };
      const attempt = async (
        user: string,
        work: (client: EventStoreDBClient) => Promise<unknown>,
      ) => {
        const client = EventStoreDBClient.connectionString(createUrl(`${user}:secret`));
        const result = await work(client).then(
          () => 'done',
          (error: { type?: string }) => error.type,
        );
        await client.dispose();
        return result;
      };
      const readIdentity = async (client: EventStoreDBClient) => {
        for await (const { event } of client.readStream('inkpad_inkpad_identity')) return event;
        return undefined;
      };
      expect(await start(database, createUrl('inkpad:secret'))).toBe(
        'The event store does not let the database user in EVENT_STORE_URL read its log ($all): an administrator runs inkpad event-store-access once (docs/operating/configure.md, Access to KurrentDB).',
      );
      expect(await grant('inkpad', 'inkpad:secret')).toEqual([
        1,
        expect.stringMatching(
          /^KurrentDB \(EventStoreDB\) refuses this at EVENT_STORE_ADMIN_URL: .*$/,
        ),
      ]);
      expect(await grant('inkpad')).toEqual([0, expect.stringMatching(/^inkpad may read \$all/)]);
      expect(await start(database, createUrl('inkpad:secret'))).toBe('started');
      expect(await attempt('inkpad', readIdentity)).toBe('done');
      expect(
        await attempt('inkpad', (client) =>
          client.setStreamMetadata('inkpad_inkpad_identity', { truncateBefore: 1 }),
        ),
      ).toBe('access-denied');
      expect(await attempt('other', readIdentity)).toBe('access-denied');
      expect(
        await attempt('other', (client) =>
          client.appendToStream('inkpad_account-1', jsonEvent({ type: 'Forged', data: {} })),
        ),
      ).toBe('access-denied');
      expect((await grant('other'))[0]).toBe(0);
      expect(await attempt('other', readIdentity)).toBe('done');
      expect(await start(database, createUrl('inkpad:secret'))).toBe('started');
      await database.close();
      await secured.stop();
    },
    SLOW,
  );
});
