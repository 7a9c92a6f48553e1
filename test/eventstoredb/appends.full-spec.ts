import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { EventStoreDbAppender } from '#platform/event-store/eventstoredb/eventstoredb-appender.js';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';
import { EventStoreDbReader } from '#platform/event-store/eventstoredb/eventstoredb-reader.js';
import { OwnStreams } from '#platform/event-store/eventstoredb/eventstoredb-streams.js';
import { event, newStream } from '#platform/event-store/port/event-store.contract.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import {
  startEventStoreDbCluster,
  type EventStoreDbCluster,
} from '../support/emulators/eventstoredb/cluster.mjs';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { eventually } from '../support/jest/eventually.js';

/** Appends to a server that responds late, twice or never. An error that nobody catches ends the process of the tests. */

const CALLERS = 16;
const streams = new OwnStreams('', ['thing-']);

let server: EventStoreDb;

beforeAll(async () => {
  server = await startEventStoreDb();
});
afterEach(() => server.fault.clear());
afterAll(() => server.stop());

const append = (connection: EventStoreDbConnection, data: object = {}) =>
  connection.append({
    streamName: newStream(),
    expectedRevision: undefined,
    events: [{ id: randomUUID(), type: 'A', data }],
  });
const appendByAll = (connection: EventStoreDbConnection) => {
  const appender = new EventStoreDbAppender(
    connection,
    streams,
    new EventStoreDbReader(connection, streams),
  );
  return Promise.all(
    Array.from({ length: CALLERS }, () =>
      appender.append({ stream: newStream(), expected: null, events: [event('A')] }),
    ),
  );
};

describe('a connection to EventStoreDB', () => {
  it('counts and drops responses that no append waits for', async () => {
    const connection = new EventStoreDbConnection(server.connectionString);
    server.fault.doubleResponses(CALLERS);
    await appendByAll(connection);
    await append(connection);
    expect(connection.orphanCount).toBe(CALLERS);
    await connection.dispose();
  });

  it('that is given up fails its own appends at once, and those of no other', async () => {
    const proxy = await DatabaseProxy.to(server.connectionString);
    const silent = new EventStoreDbConnection(proxy.url);
    const otherConnection = new EventStoreDbConnection(server.connectionString);
    await Promise.all([append(silent), append(otherConnection)]);
    proxy.muteOpen();
    // More than the connection takes, so that not even its end gets through.
    const data = { text: 'x'.repeat(20_000) };
    const lost = Array.from({ length: 250 }, () => append(silent, data));
    const before = server.appended;
    const release = server.fault.holdResponses('append');
    const stored = Array.from({ length: CALLERS }, () => append(otherConnection));
    await eventually(
      () => server.appended - before,
      (appended) => appended === CALLERS,
    );
    silent.renew(silent.client);
    const outcomes = await Promise.allSettled(lost);
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    proxy.unmute();
    release();
    await Promise.all(stored);
    expect(otherConnection.orphanCount).toBe(0);
    await Promise.all([silent.dispose(), otherConnection.dispose()]);
    await proxy.close();
  });

  it.each(['drop', 'cancel'] as const)(
    'repeats appends whose call has ended (%s), and each is stored once',
    async (how) => {
      const connection = new EventStoreDbConnection(server.connectionString);
      const before = server.appended;
      server.fault.loseResponses(2, how);
      await appendByAll(connection);
      expect(server.appended - before).toBe(CALLERS);
      await connection.dispose();
    },
  );
});

describe('a search for the leader that fails', () => {
  let cluster: EventStoreDbCluster;

  beforeAll(async () => {
    cluster = await startEventStoreDbCluster();
  });
  afterAll(() => cluster.stop());

  it('fails the append alone, although an older call ends meanwhile', async () => {
    const connection = new EventStoreDbConnection(cluster.connectionString);
    const [former, next] = cluster.nodes;
    if (!former || !next) throw new Error('a cluster has three nodes');
    const subscription = connection.client.subscribeToAll({ fromPosition: 'end' });
    const ended = new Promise((resolve) => subscription.once('error', resolve));
    await eventually(
      () => former.subscriptions,
      (count) => count === 1,
    );
    former.fault.notLeader(1, { port: next.port });
    await expect(append(connection)).rejects.toMatchObject({ type: 'not-leader' });
    await next.stopListening();
    former.fault.loseLeader();
    await expect(append(connection)).rejects.toThrow();
    const search = append(connection);
    former.fault.dropSubscriptions('unavailable');
    await ended;
    await expect(search).rejects.toThrow('Failed to discover');
    await connection.dispose();
  });
});
