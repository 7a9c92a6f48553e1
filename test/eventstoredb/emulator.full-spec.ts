import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  BACKWARDS,
  END,
  EventStoreDBClient,
  START,
  binaryEvent,
  excludeSystemEvents,
  jsonEvent,
  streamNameFilter,
  type AllStreamSubscription,
  type AppendExpectedRevision,
  type Position,
  type StreamSubscription,
} from '@eventstore/db-client';
import { Agent, request } from 'undici';
import { eventually } from '../support/jest/eventually.js';
import { startEventStoreDbProcess } from '../support/emulators/eventstoredb/as-process.mjs';
import { selfSigned } from '../support/emulators/eventstoredb/certificate.mjs';
import { startEventStoreDbCluster } from '../support/emulators/eventstoredb/cluster.mjs';
import { MEASURED_DELAYS, pickDelay } from '../support/emulators/eventstoredb/latency.mjs';
import {
  startEventStoreDb,
  type EventStoreDb,
  type EventStoreDbOptions,
} from '../support/emulators/eventstoredb/server.mjs';

const event = (type = 'Stamped', id = randomUUID()) =>
  jsonEvent({ id, type, data: { stamps: 1 }, metadata: { by: 'test' } });
const newStream = (category = 'card') => `${category}-${randomUUID()}`;

type Store = { server: EventStoreDb; client: EventStoreDBClient; close: () => Promise<void> };

async function openStore(options: EventStoreDbOptions = {}, parameters = ''): Promise<Store> {
  const server = await startEventStoreDb(options);
  const client = EventStoreDBClient.connectionString(`${server.connectionString}${parameters}`);
  const close = async () => {
    await client.dispose();
    await server.stop();
  };
  return { server, client, close };
}

async function readIds(client: EventStoreDBClient, stream: string): Promise<string[]> {
  const eventIds: string[] = [];
  for await (const { event: read } of client.readStream(stream)) eventIds.push(read?.id ?? '');
  return eventIds;
}

const findOutcome = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'done',
    (error: { type?: string }) => error.type,
  );

type ReadEvent = { id: string; stream: string; type: string; position: Position };

async function readAll(
  client: EventStoreDBClient,
  options: Parameters<EventStoreDBClient['readAll']>[0] = {},
): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  for await (const { event: read } of client.readAll(options)) {
    if (!read) throw new Error('a link without its event');
    const { id, streamId: stream, type, position } = read;
    events.push({ id, stream, type, position });
  }
  return events;
}

type Recording = {
  events: ReadEvent[];
  caughtUp: number;
  confirmed: number;
  errors: string[];
  subscription: AllStreamSubscription | StreamSubscription;
};

function follow(subscription: AllStreamSubscription | StreamSubscription): Recording {
  const recording: Recording = { events: [], caughtUp: 0, confirmed: 0, errors: [], subscription };
  subscription.on('confirmation', () => (recording.confirmed += 1));
  subscription.on('caughtUp', () => (recording.caughtUp += 1));
  subscription.on('error', (error) => {
    recording.errors.push('type' in error ? String(error.type) : String(error));
  });
  subscription.on('data', ({ event: read }) => {
    if (!read?.position) throw new Error('an event without its position');
    const { id, streamId: stream, type, position } = read;
    recording.events.push({ id, stream, type, position });
  });
  return recording;
}

const waitUntilCaughtUp = (recording: Recording) =>
  eventually(
    () => recording.caughtUp,
    (times) => times === 1,
  );

const listIds = (recording: Recording) => recording.events.map(({ id }) => id);

const waitForIds = (recording: Recording, expected: string[]) =>
  eventually(
    () => listIds(recording),
    (seen) => seen.length >= expected.length,
  );

describe('the EventStoreDB emulator, appends', () => {
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ server, client, close } = await openStore());
  });
  afterEach(() => server.fault.clear());
  afterAll(() => close());

  const append = (
    stream: string,
    events: Parameters<EventStoreDBClient['appendToStream']>[1],
    expectedRevision: AppendExpectedRevision,
  ) => client.appendToStream(stream, events, { expectedRevision });

  it('appends at the expected revision no_stream, an exact one, stream_exists and any', async () => {
    const stream = newStream();
    const first = await append(stream, event(), 'no_stream');
    const second = await append(stream, [event(), event()], 0n);
    const third = await append(stream, event(), 'stream_exists');
    const fourth = await append(stream, event(), 'any');

    const revisions = [first, second, third, fourth].map((each) => each.nextExpectedRevision);
    expect(revisions).toEqual([0n, 2n, 3n, 4n]);
    const last = (await readAll(client, { direction: BACKWARDS, fromPosition: END })).find(
      (read) => read.stream === stream,
    );
    expect(fourth.position).toEqual(last?.position);
  });

  it.each<[AppendExpectedRevision, number, bigint | 'no_stream']>([
    ['no_stream', 2, 1n],
    [0n, 2, 1n],
    [5n, 2, 1n],
    [0n, 0, 'no_stream'],
    ['stream_exists', 0, 'no_stream'],
  ])(
    'rejects expected revision %s of a stream with %d events as a conflict',
    async (expected, eventCount, actual) => {
      const stream = newStream();
      for (let i = 0; i < eventCount; i += 1) await append(stream, event(), 'any');
      const before = server.appended;

      await expect(append(stream, event(), expected)).rejects.toMatchObject({
        type: 'wrong-expected-version',
        streamName: stream,
        expectedVersion: expected,
        actualVersion: actual,
      });
      expect(server.appended).toBe(before);
    },
  );

  it('treats the same ids at the same expected revision as a retry, however old', async () => {
    const stream = newStream();
    const old = [event(), event()];
    const first = await append(stream, old, 'no_stream');
    const second = await append(stream, [event(), event(), event()], 1n);
    for (let i = 0; i < 300; i += 1) await append(stream, event(), 'any');
    const before = await readIds(client, stream);

    expect(await append(stream, old, 'no_stream')).toEqual(first);
    expect(await append(stream, old[0] ?? [], 'no_stream')).toMatchObject({
      success: true,
      nextExpectedRevision: 0n,
    });
    expect(second.nextExpectedRevision).toBe(4n);
    expect(await readIds(client, stream)).toEqual(before);
  });

  it('rejects partly equal ids, and equal ids at another revision, as a conflict', async () => {
    const stream = newStream();
    const [one, two] = [event(), event()];
    await append(stream, [one, two], 'no_stream');
    const conflict = { type: 'wrong-expected-version', actualVersion: 1n };

    await expect(append(stream, [one, event()], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, [event(), two], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, [one, two, event()], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, two, 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, two, 7n)).rejects.toMatchObject(conflict);
    expect(await readIds(client, stream)).toEqual([one.id, two.id]);
  });

  it('appends the same id again when the expected revision is the current one', async () => {
    const stream = newStream();
    const newEvent = event();
    await append(stream, newEvent, 'no_stream');
    await append(stream, newEvent, 0n);

    expect(await readIds(client, stream)).toEqual([newEvent.id, newEvent.id]);
  });

  it('recognizes only recent ids when the expected revision is any or stream_exists', async () => {
    const smallStore = await openStore({ recentIds: 3 });
    const stream = newStream();
    const [old, recent] = [event(), event()];
    const write = (each: typeof old | (typeof old)[], expectedRevision: AppendExpectedRevision) =>
      smallStore.client.appendToStream(stream, each, { expectedRevision });
    await write(old, 'any');
    await write([event(), recent], 'any');

    await write(recent, 'any');
    await write(recent, 'stream_exists');
    expect(await readIds(smallStore.client, stream)).toHaveLength(3);
    await expect(write([recent, event()], 'any')).rejects.toMatchObject({
      type: 'wrong-expected-version',
      expectedVersion: 'any',
    });
    await write(event(), 'any');
    await write(old, 'any');
    expect((await readIds(smallStore.client, stream)).filter((id) => id === old.id)).toHaveLength(
      2,
    );
    await smallStore.close();
  });

  it('writes the events of an append together or not at all', async () => {
    const stream = newStream();
    const groups = Array.from({ length: 20 }, () => [event(), event(), event()]);
    await Promise.all(groups.map((group) => append(stream, group, 'any')));
    await expect(append(stream, [event(), event()], 3n)).rejects.toThrow('');

    const writtenIds = await readIds(client, stream);
    expect(writtenIds).toHaveLength(60);
    for (const group of groups) {
      const at = writtenIds.indexOf(group[0]?.id ?? '');
      expect(writtenIds.slice(at, at + 3)).toEqual(group.map(({ id }) => id));
    }
  });

  it('rejects an append over 1 MiB', async () => {
    const stream = newStream();
    // Each letter of the type counts as two bytes.
    const half = () => binaryEvent({ type: 'Half', data: Buffer.alloc(524_280) });
    await append(stream, [half(), half()], 'no_stream');
    const rejection = { type: 'maximum-append-size-exceeded', maxAppendSize: 1_048_576 };

    await expect(append(stream, [half(), half(), event()], 1n)).rejects.toMatchObject(rejection);
    const huge = binaryEvent({ type: 'Huge', data: Buffer.alloc(4_000_000) });
    await expect(append(stream, [half(), huge, half()], 1n)).rejects.toMatchObject(rejection);
    expect(await readIds(client, stream)).toHaveLength(2);
  });

  it('preserves bytes, content type and names, and records the time of the append', async () => {
    const stream = newStream('Käffchen ☕');
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const before = Date.now();
    await append(
      stream,
      [
        binaryEvent({ type: 'Bytes', data: bytes, metadata: Uint8Array.from([255, 0, 128]) }),
        jsonEvent({ type: 'Text ☕', data: { text: '‹ü›\u0000' }, metadata: { n: 1 } }),
        jsonEvent({ type: 'Bare', data: [] as never }),
      ],
      'no_stream',
    );
    const after = Date.now();

    const read = [];
    for await (const { event: each } of client.readStream(stream)) read.push(each);
    expect(read.map((each) => each?.streamId)).toEqual([stream, stream, stream]);
    expect(read.map((each) => each?.isJson)).toEqual([false, true, true]);
    expect(Buffer.from(read[0]?.data as Uint8Array)).toEqual(Buffer.from(bytes));
    expect(Buffer.from(read[0]?.metadata as Uint8Array)).toEqual(Buffer.from([255, 0, 128]));
    expect(read[1]).toMatchObject({ type: 'Text ☕', data: { text: '‹ü›\u0000' } });
    expect(read[1]?.metadata).toEqual({ n: 1 });
    expect(read[2]?.metadata).toBeUndefined();
    for (const each of read) {
      expect(each?.created.getTime()).toBeGreaterThanOrEqual(before);
      expect(each?.created.getTime()).toBeLessThanOrEqual(after);
    }
  });

  it('checks the expected revision of an empty append and writes nothing', async () => {
    const stream = newStream();
    await append(stream, event(), 'no_stream');

    expect(await append(stream, [], 0n)).toMatchObject({ success: true, nextExpectedRevision: 0n });
    await expect(append(stream, [], 'no_stream')).rejects.toMatchObject({
      type: 'wrong-expected-version',
    });
    expect(await readIds(client, stream)).toHaveLength(1);
  });

  it('writes an append before its delayed response exceeds the deadline', async () => {
    const stream = newStream();
    server.fault.delayResponses(60_000);
    await expect(
      client.appendToStream(stream, event(), { expectedRevision: 'no_stream', deadline: 1_000 }),
    ).rejects.toMatchObject({ type: 'deadline-exceeded' });

    server.fault.clear();
    expect(await readIds(client, stream)).toHaveLength(1);
  });

  it('reports a timeout after its own limit, although it has written the append', async () => {
    const strictStore = await openStore({ writeTimeoutMs: 20 });
    const stream = newStream();
    strictStore.server.fault.delayResponses(60_000);
    await expect(strictStore.client.appendToStream(stream, event())).rejects.toMatchObject({
      type: 'deadline-exceeded',
    });

    strictStore.server.fault.clear();
    expect(await readIds(strictStore.client, stream)).toHaveLength(1);
    await strictStore.close();
  });

  it('delays its response when told to', async () => {
    server.fault.delayResponses(50);
    const startedAt = performance.now();
    await append(newStream(), event(), 'no_stream');

    expect(performance.now() - startedAt).toBeGreaterThan(45);
  });

  it.each([
    ['unavailable', 'unavailable'],
    ['not-ready', 'unknown'],
    ['timeout', 'deadline-exceeded'],
  ] as const)('fails appends before it writes them: %s', async (how, type) => {
    const stream = newStream();
    const newEvent = event();
    const before = server.appended;
    server.fault.failAppends(2, how);

    await expect(append(stream, newEvent, 'no_stream')).rejects.toMatchObject({ type });
    await expect(append(stream, newEvent, 'no_stream')).rejects.toMatchObject({ type });
    expect(server.appended).toBe(before);
    await append(stream, newEvent, 'no_stream');
    expect(await readIds(client, stream)).toEqual([newEvent.id]);
  });

  it('recognizes retries after it has written an append and dropped the connection', async () => {
    const stream = newStream();
    const newEvent = event();
    server.fault.loseResponses(2, 'drop');

    await expect(append(stream, newEvent, 'no_stream')).rejects.toMatchObject({
      type: 'unavailable',
    });
    await expect(append(stream, newEvent, 'no_stream')).rejects.toMatchObject({
      type: 'unavailable',
    });
    expect(await append(stream, newEvent, 'no_stream')).toMatchObject({ nextExpectedRevision: 0n });
    expect(await readIds(client, stream)).toEqual([newEvent.id]);
  });

  it('writes an append and never responds when told to', async () => {
    const silentStore = await openStore();
    const stream = newStream();
    silentStore.server.fault.loseResponses(1, 'silence');
    let isSettled = false;
    const pendingAppend = silentStore.client
      .appendToStream(stream, event(), { deadline: 60_000 })
      .then(String, String)
      .finally(() => (isSettled = true));
    await eventually(
      () => silentStore.server.appended,
      (appended) => appended === 1,
    );

    expect(await readIds(silentStore.client, stream)).toHaveLength(1);
    expect(isSettled).toBe(false);
    await silentStore.close();
    await pendingAppend;
  });

  it('redirects the client to another leader', async () => {
    const otherStore = await openStore();
    const follower = EventStoreDBClient.connectionString(server.connectionString);
    const stream = newStream();
    server.fault.notLeader(1, { port: otherStore.server.port });

    await expect(follower.appendToStream(stream, event())).rejects.toMatchObject({
      type: 'not-leader',
      leader: { address: '127.0.0.1', port: otherStore.server.port },
    });
    await follower.appendToStream(stream, event());
    expect(otherStore.server.appended).toBe(1);
    await follower.dispose();
    await otherStore.close();
  });

  it('takes as long as it is told to, and writes in the order of arrival', async () => {
    const slowStore = await openStore({ delays: [{ appends: 1, ms: [40, 40] }] });
    const write = (stream: string, expectedRevision: AppendExpectedRevision) =>
      slowStore.client.appendToStream(stream, event(), { expectedRevision });
    const stream = newStream();
    const startedAt = performance.now();
    await write(stream, 'no_stream');
    expect(performance.now() - startedAt).toBeGreaterThan(35);
    await Promise.all([0n, 1n, 2n].map((revision) => write(stream, revision)));
    // With three under way, the last one takes three times as long: the server writes no faster.
    expect(performance.now() - startedAt).toBeGreaterThan(35 + 3 * 35);
    expect(slowStore.server.appended).toBe(4);
    await slowStore.close();
  });
});

describe('the EventStoreDB emulator', () => {
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;
  const stream = newStream();
  const writtenEvents = Array.from({ length: 100 }, () => event());
  const writtenIds = writtenEvents.map(({ id }) => id);

  beforeAll(async () => {
    ({ server, client, close } = await openStore());
    for (const each of writtenEvents) await client.appendToStream(stream, each);
  });
  afterEach(() => server.fault.clear());
  afterAll(() => close());

  const revisions = async (options: Parameters<EventStoreDBClient['readStream']>[1]) => {
    const numbers: number[] = [];
    for await (const { event: read } of client.readStream(stream, options)) {
      numbers.push(Number(read?.revision));
    }
    return numbers;
  };

  it('reads a stream from a revision, inclusive', async () => {
    expect(await revisions({ fromRevision: START, maxCount: 3 })).toEqual([0, 1, 2]);
    expect(await revisions({ fromRevision: 97n })).toEqual([97, 98, 99]);
    expect(await revisions({ fromRevision: 100n })).toEqual([]);
    expect(await revisions({ fromRevision: END })).toEqual([]);
    expect(await revisions({})).toHaveLength(100);
  });

  it('reads a stream backwards from a revision, inclusive', async () => {
    const direction = BACKWARDS;
    expect(await revisions({ direction, fromRevision: END, maxCount: 2 })).toEqual([99, 98]);
    expect(await revisions({ direction, fromRevision: 1n })).toEqual([1, 0]);
    expect(await revisions({ direction, fromRevision: START })).toEqual([0]);
  });

  it('reports a missing stream only when it is read', async () => {
    const missing = newStream();
    const reading = client.readStream(missing);

    await expect(reading[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      type: 'stream-not-found',
      streamName: missing,
    });
  });

  it('reads $all with system events, by positions that rise with gaps', async () => {
    const everything = await readAll(client);

    let previous = -1n;
    for (const { position } of everything) {
      expect(position.prepare).toBe(position.commit);
      expect(position.commit - previous).toBeGreaterThan(60n);
      previous = position.commit;
    }
    const system = everything.filter(({ type }) => type.startsWith('$'));
    expect(everything[0]?.type).toBe('$metadata');
    expect(system.filter(({ type }) => type === '$statsCollected').length).toBeGreaterThan(10);
    const ours = everything.filter((read) => read.stream === stream);
    expect(ours.map(({ id }) => id)).toEqual(writtenIds);
    expect(ours.length + system.length).toBe(everything.length);
  });

  it('reads $all from a position, inclusive', async () => {
    const everything = await readAll(client);
    const middle = everything[50];
    const fromPosition = middle?.position ?? START;

    expect(await readAll(client, { fromPosition })).toEqual(everything.slice(50));
    expect(await readAll(client, { fromPosition, maxCount: 2 })).toEqual(everything.slice(50, 52));
    expect(await readAll(client, { fromPosition: START, maxCount: 1 })).toEqual([everything[0]]);
    expect(await readAll(client, { fromPosition: { commit: 0n, prepare: 0n } })).toEqual(
      everything,
    );
    expect(await readAll(client, { fromPosition: END })).toEqual([]);
  });

  it('reads $all backwards from a position, exclusive', async () => {
    const everything = await readAll(client);
    const backwards = everything.toReversed();
    const direction = BACKWARDS;
    const fromPosition = everything[50]?.position ?? START;

    expect(await readAll(client, { direction, fromPosition: END })).toEqual(backwards);
    expect(await readAll(client, { direction, fromPosition: END, maxCount: 1 })).toEqual(
      everything.slice(-1),
    );
    expect(await readAll(client, { direction, fromPosition })).toEqual(
      everything.slice(0, 50).toReversed(),
    );
    expect(await readAll(client, { direction, fromPosition: START })).toEqual([]);
  });

  it('rejects a position that no event has', async () => {
    const [first] = await readAll(client, { maxCount: 1 });
    const commit = (first?.position.commit ?? 0n) + 1n;
    const invalid = { code: 3 };

    await expect(
      readAll(client, { fromPosition: { commit, prepare: commit } }),
    ).rejects.toMatchObject(invalid);
    await expect(
      readAll(client, { fromPosition: { commit: 0n, prepare: 1n } }),
    ).rejects.toMatchObject(invalid);
  });

  it('cuts a read in the middle when told to', async () => {
    server.fault.cutReads(1, 5);
    const reading = client.readStream(stream);
    const positions: bigint[] = [];
    const read = async () => {
      for await (const { event: each } of reading) positions.push(each?.revision ?? -1n);
    };

    await expect(read()).rejects.toMatchObject({ type: 'unavailable' });
    expect(positions.length).toBeLessThanOrEqual(5);
    expect(await revisions({})).toHaveLength(100);
  });

  it.each([
    ['26.0.3', 'identity,deflate,gzip', 'gzip'],
    ['26.0.3', 'identity', 'identity'],
    ['23.10.6.0', 'identity,deflate,gzip', 'identity'],
  ])('version %s compresses for a client that accepts %s: %s', async (version, accepted, used) => {
    const otherServer = await startEventStoreDb({ version });
    const session = connect(`http://127.0.0.1:${otherServer.port}`);
    const call = session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: '/event_store.client.gossip.Gossip/Read',
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-accept-encoding': accepted,
    });
    call.end(Buffer.alloc(5));
    const [headers] = (await once(call, 'response')) as [IncomingHttpHeaders];
    const message = await buffer(call);
    expect(headers['grpc-encoding']).toBe(used);
    expect(message[0]).toBe(used === 'gzip' ? 1 : 0);
    session.close();
    await otherServer.stop();
  });

  it('serves a client that discovers the nodes of a cluster', async () => {
    const discoveryClient = EventStoreDBClient.connectionString(
      server.connectionString.replace('esdb:', 'esdb+discover:'),
    );
    expect(await readIds(discoveryClient, stream)).toHaveLength(100);
    await discoveryClient.dispose();
  });
});

describe('delays as on real servers', () => {
  it.each([
    [1, 3, 3],
    [16, 9, 11],
    [64, 12, 21],
    [128, 24, 42],
  ])('with %d appends under way, one takes %d to %d ms', (appends, shortest, longest) => {
    const at = (random: number) => pickDelay(MEASURED_DELAYS, appends, random);
    expect([at(0), at(1)]).toEqual([shortest, longest]);
  });

  it('rise in between', () => {
    const at = (appends: number) => pickDelay(MEASURED_DELAYS, appends, 0.5);
    expect([2, 8, 16, 40, 64].map(at)).toEqual([2, 8, 16, 40, 64].map(at).sort((a, b) => a - b));
    expect(at(2)).toBeGreaterThan(at(1));
  });
});

describe('the leader of the EventStoreDB emulator', () => {
  const askHttp = async ({ port }: EventStoreDb, path: string) => {
    const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`);
    const text = await body.text();
    return { statusCode, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };

  it('serves once it is elected, and is alive at /health/live before', async () => {
    const { server, client, close } = await openStore({ leaderless: true });
    const stream = newStream();
    const live = { statusCode: 204, body: undefined };
    expect(await askHttp(server, '/health/live')).toEqual(live);
    expect(await askHttp(server, '/gossip')).toMatchObject({
      body: { members: [{ state: 'Unknown', isAlive: true, httpEndPointPort: server.port }] },
    });
    await expect(client.appendToStream(stream, event())).rejects.toMatchObject({ type: 'unknown' });
    await expect(readIds(client, stream)).rejects.toMatchObject({ type: 'unavailable' });

    server.fault.electLeader();
    expect(await askHttp(server, '/gossip')).toMatchObject({
      body: { members: [{ state: 'Leader' }], serverPort: server.port },
    });
    await client.appendToStream(stream, event());
    server.fault.loseLeader();
    await expect(client.appendToStream(stream, event())).rejects.toMatchObject({ type: 'unknown' });
    expect(await askHttp(server, '/health/live')).toEqual(live);
    expect(await askHttp(server, '/health/live?liveCode=200')).toMatchObject({ statusCode: 200 });
    await close();
  });

  it('changes to another node, which has every acknowledged event', async () => {
    const cluster = await startEventStoreDbCluster({ delays: [{ appends: 1, ms: [4, 4] }] });
    const client = EventStoreDBClient.connectionString(cluster.connectionString);
    const first = cluster.leader;
    const stream = newStream();
    const confirmedIds: string[] = [];
    let isStopping = false;
    const writing = (async () => {
      for (let newEvent = event(); !isStopping; newEvent = event()) {
        const expectedRevision = confirmedIds.length - 1;
        const expected = expectedRevision < 0 ? 'no_stream' : BigInt(expectedRevision);
        for (let isWritten = false; !isWritten;) {
          isWritten = await client
            .appendToStream(stream, newEvent, { expectedRevision: expected, deadline: 1_000 })
            .then(
              () => true,
              () => false,
            );
        }
        confirmedIds.push(newEvent.id);
      }
    })();
    await eventually(
      () => confirmedIds.length,
      (length) => length > 20,
    );
    const change = cluster.changeLeader(200);
    expect(cluster.leader).toBeUndefined();
    await change;
    const countAtChange = confirmedIds.length;
    await eventually(
      () => confirmedIds.length,
      (length) => length > countAtChange + 20,
    );
    isStopping = true;
    await writing;
    await first?.listenAgain();

    expect(cluster.leader).not.toBe(first);
    expect(await readIds(client, stream)).toEqual(confirmedIds);
    const follower = EventStoreDBClient.connectionString(first?.connectionString ?? '');
    expect(await readIds(follower, stream)).toEqual(confirmedIds);
    await follower.dispose();
    await client.dispose();
    await cluster.stop();
  });
});

describe('subscriptions to the EventStoreDB emulator', () => {
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ server, client, close } = await openStore());
    for (let i = 0; i < 50; i += 1) await client.appendToStream(newStream(), event());
  });
  afterEach(async () => {
    server.fault.clear();
    await eventually(
      () => server.subscriptions,
      (count) => count === 0,
    );
  });
  afterAll(() => close());

  it('deliver $all from the start and go on live', async () => {
    const recording = follow(client.subscribeToAll({ fromPosition: START }));
    await waitUntilCaughtUp(recording);
    const idsBefore = listIds(recording);
    expect(recording.confirmed).toBe(1);

    const [one, two] = [event(), event()];
    await client.appendToStream(newStream(), [one, two]);
    await eventually(
      () => listIds(recording).includes(two.id),
      (seen) => seen,
    );
    expect((await readAll(client)).map(({ id }) => id)).toEqual(listIds(recording));
    expect(listIds(recording).slice(idsBefore.length)).toEqual(
      expect.arrayContaining([one.id, two.id]),
    );
    await recording.subscription.unsubscribe();
  });

  it('start after the requested position', async () => {
    const everything = await readAll(client);
    const fromPosition = everything[20]?.position ?? START;
    const recording = follow(client.subscribeToAll({ fromPosition }));
    await waitUntilCaughtUp(recording);

    expect(recording.events).toEqual(everything.slice(21));
    await recording.subscription.unsubscribe();
  });

  it('start at the end, and deliver only new events', async () => {
    const recording = follow(
      client.subscribeToAll({ fromPosition: END, filter: streamNameFilter({ prefixes: ['x-'] }) }),
    );
    await waitUntilCaughtUp(recording);
    const newEvent = event();
    await client.appendToStream(newStream('x'), newEvent);
    await waitForIds(recording, [newEvent.id]);

    expect(listIds(recording)).toEqual([newEvent.id]);
    await recording.subscription.unsubscribe();
  });

  it('deliver nothing up to a position ahead of the log', async () => {
    const [last] = await readAll(client, { direction: BACKWARDS, fromPosition: END, maxCount: 1 });
    const commit = (last?.position.commit ?? 0n) + 1_000n;
    const recording = follow(client.subscribeToAll({ fromPosition: { commit, prepare: commit } }));
    await waitUntilCaughtUp(recording);
    for (let i = 0; i < 20; i += 1) await client.appendToStream(newStream(), event());
    const ahead = (await readAll(client)).filter(({ position }) => position.commit > commit);
    await waitForIds(
      recording,
      ahead.map(({ id }) => id),
    );

    expect(recording.events).toEqual(ahead);
    await recording.subscription.unsubscribe();
  });

  it('deliver only streams with one of the prefixes, both while catching up and live', async () => {
    const kinds = ['a', 'b', 'c'];
    const write = async () => {
      for (const kind of kinds) await client.appendToStream(newStream(`${kind}kind`), event(kind));
    };
    await write();
    const recording = follow(
      client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['akind-', 'ckind-'] }) }),
    );
    await waitUntilCaughtUp(recording);
    await write();
    await waitForIds(recording, Array.from({ length: 4 }, String));

    expect(recording.events.map(({ type }) => type)).toEqual(['a', 'c', 'a', 'c']);
    await recording.subscription.unsubscribe();
  });

  it('exclude system events by a regular expression on the type', async () => {
    const recording = follow(client.subscribeToAll({ filter: excludeSystemEvents() }));
    await waitUntilCaughtUp(recording);
    const ours = (await readAll(client)).filter(({ type }) => !type.startsWith('$'));

    expect(recording.events).toEqual(ours);
    await recording.subscription.unsubscribe();
  });

  it('report checkpoints while catching up, even when the filter excludes everything', async () => {
    const everything = await readAll(client);
    const checkpoints: Position[] = [];
    const recording = follow(
      client.subscribeToAll({
        filter: streamNameFilter({
          prefixes: ['nothing-'],
          maxSearchWindow: 5,
          checkpointInterval: 2,
          checkpointReached: async (_, position) => {
            checkpoints.push(position);
          },
        }),
      }),
    );
    await waitUntilCaughtUp(recording);

    expect(recording.events).toEqual([]);
    const commits = checkpoints.map(({ commit }) => commit);
    const full = Math.floor(everything.length / 10);
    expect(commits.length).toBeGreaterThanOrEqual(full - 1);
    expect(commits.length).toBeLessThanOrEqual(full);
    expect(commits.toSorted((a, b) => Number(a - b))).toEqual(commits);
    for (const [index, commit] of commits.entries()) {
      const lastOfWindow = everything[(index + 1) * 10 - 1];
      expect(commit).toBeLessThanOrEqual(lastOfWindow?.position.commit ?? 0n);
    }
    await recording.subscription.unsubscribe();
  });

  it('report a checkpoint every interval times window events while live', async () => {
    const checkpoints: Position[] = [];
    const recording = follow(
      client.subscribeToAll({
        fromPosition: END,
        filter: streamNameFilter({
          prefixes: ['nothing-'],
          maxSearchWindow: 2,
          checkpointInterval: 3,
          checkpointReached: async (_, position) => {
            checkpoints.push(position);
          },
        }),
      }),
    );
    await waitUntilCaughtUp(recording);
    const before = (await readAll(client)).length;
    for (let i = 0; i < 24; i += 1) await client.appendToStream(newStream(), event());
    const after = (await readAll(client)).slice(before);
    const expected = after.filter((_, index) => index % 6 === 5).map(({ position }) => position);
    await eventually(
      () => checkpoints.length,
      (length) => length === expected.length,
    );

    expect(checkpoints).toEqual(expected);
    await recording.subscription.unsubscribe();
  });

  it('lose and repeat nothing when they resume at a checkpoint', async () => {
    const checkpoints: Position[] = [];
    const filter = { prefixes: ['card-'], maxSearchWindow: 3 };
    const whole = follow(
      client.subscribeToAll({
        filter: streamNameFilter({
          ...filter,
          checkpointReached: async (_, position) => {
            checkpoints.push(position);
          },
        }),
      }),
    );
    await waitUntilCaughtUp(whole);
    await whole.subscription.unsubscribe();
    expect(checkpoints.length).toBeGreaterThan(10);

    for (const position of checkpoints.slice(0, 10)) {
      const again = follow(
        client.subscribeToAll({ fromPosition: position, filter: streamNameFilter(filter) }),
      );
      await waitUntilCaughtUp(again);
      const after = whole.events.filter((read) => read.position.commit > position.commit);
      const at = whole.events.filter((read) => read.position.commit === position.commit);
      const expected = position.prepare < position.commit ? [...at, ...after] : after;
      expect(again.events).toEqual(expected);
      await again.subscription.unsubscribe();
    }
  });

  it('deliver every event of a fast writer in order', async () => {
    const filter = streamNameFilter({ prefixes: ['rush-'] });
    const recording = follow(client.subscribeToAll({ filter }));
    const events = Array.from({ length: 500 }, () => event());
    await Promise.all(events.map((each) => client.appendToStream(newStream('rush'), each)));
    await waitForIds(
      recording,
      events.map(({ id }) => id),
    );

    const ordered = (await readAll(client)).filter((read) => read.stream.startsWith('rush-'));
    expect(recording.events).toEqual(ordered);
    await recording.subscription.unsubscribe();
  });

  it('deliver one stream from after a revision, even before it exists', async () => {
    const stream = newStream();
    const early = follow(client.subscribeToStream(stream));
    await waitUntilCaughtUp(early);
    const events = Array.from({ length: 5 }, () => event());
    await client.appendToStream(stream, events);
    const late = follow(client.subscribeToStream(stream, { fromRevision: 2n }));
    const atEnd = follow(client.subscribeToStream(stream, { fromRevision: END }));
    await waitUntilCaughtUp(late);
    await waitUntilCaughtUp(atEnd);
    const last = event();
    await client.appendToStream(stream, last);
    const expected = [...events, last].map(({ id }) => id);
    await waitForIds(early, expected);
    await waitForIds(late, expected.slice(3));
    await waitForIds(atEnd, [last.id]);

    expect(listIds(early)).toEqual(expected);
    expect(listIds(late)).toEqual(expected.slice(3));
    expect(listIds(atEnd)).toEqual([last.id]);
    for (const each of [early, late, atEnd]) await each.subscription.unsubscribe();
  });

  it.each([
    ['cancelled', 'cancelled'],
    ['unavailable', 'unavailable'],
    ['too-slow', 'timeout'],
    ['connection', 'unavailable'],
  ] as const)('that are dropped as %s end with the error %s', async (how, type) => {
    const recording = follow(client.subscribeToAll());
    await waitUntilCaughtUp(recording);
    server.fault.dropSubscriptions(how);
    await eventually(
      () => recording.errors,
      (errors) => errors.length > 0,
    );

    expect(recording.errors).toEqual([type]);
  });

  it('resume after the last delivered event when they are cut while catching up', async () => {
    const everything = await readAll(client);
    server.fault.cutReads(1, 30);
    const first = follow(client.subscribeToAll());
    await eventually(
      () => first.errors,
      (errors) => errors.length > 0,
    );
    expect(first.errors).toEqual(['unavailable']);
    expect(first.events.length).toBeLessThanOrEqual(30);
    expect(first.caughtUp).toBe(0);

    const fromPosition = first.events.at(-1)?.position ?? START;
    const second = follow(client.subscribeToAll({ fromPosition }));
    await waitUntilCaughtUp(second);
    expect([...first.events, ...second.events]).toEqual(everything);
    await second.subscription.unsubscribe();
  });

  it('deliver every event to a slow reader', async () => {
    // Its own connection, because the tests above have cut the shared one.
    const { client: ownClient, close } = await openStore();
    try {
      const stream = newStream();
      const data = Buffer.alloc(20_000);
      const events = Array.from({ length: 400 }, () => binaryEvent({ type: 'Large', data }));
      for (let i = 0; i < 400; i += 40) {
        await ownClient.appendToStream(stream, events.slice(i, i + 40));
      }
      const subscription = ownClient.subscribeToStream(stream, {}, { highWaterMark: 1 });
      const eventIds: string[] = [];
      for await (const { event: read } of subscription) {
        eventIds.push(read?.id ?? '');
        await new Promise(setImmediate);
        if (eventIds.length === events.length) await subscription.unsubscribe();
      }
      expect(eventIds).toEqual(events.map(({ id }) => id));
    } finally {
      await close();
    }
  });
});

describe('the EventStoreDB emulator over TLS', () => {
  let server: EventStoreDb;
  let directory: string;
  let selfSignedCertificate: Buffer;
  let address: (user: string) => string;

  beforeAll(async () => {
    const tls = selfSigned();
    directory = await mkdtemp(join(tmpdir(), 'inkpad-eventstoredb-'));
    const authority = join(directory, 'ca.pem');
    await writeFile(authority, tls.cert);
    selfSignedCertificate = tls.cert;
    server = await startEventStoreDb({ tls, users: { admin: 'changeit' } });
    address = (user) =>
      `esdb://${user}localhost:${server.port}?tls=true&tlsCAFile=${encodeURIComponent(authority)}`;
  });
  afterAll(async () => {
    await server.stop();
    await rm(directory, { recursive: true });
  });

  const attemptAll = async (user: string) => {
    const client = EventStoreDBClient.connectionString(address(user));
    const credentials = user === '' ? undefined : { username: 'admin', password: 'wrong' };
    const outcomes = [
      await findOutcome(client.appendToStream(newStream(), event())),
      await findOutcome(readAll(client, { maxCount: 1, ...(credentials && { credentials }) })),
      await findOutcome(readAll(client, { maxCount: 1 })),
    ];
    await client.dispose();
    return outcomes;
  };
  it('accepts the right password and rejects a wrong one on each call', async () => {
    expect(await attemptAll('admin:changeit@')).toEqual(['done', 'access-denied', 'done']);
  });

  it('refuses a wrong password and an unknown name', async () => {
    const denied = ['access-denied', 'access-denied', 'access-denied'];
    expect(await attemptAll('admin:other@')).toEqual(denied);
    expect(await attemptAll('toString:changeit@')).toEqual(denied);
  });

  it('refuses a call without a password', async () => {
    const denied = ['access-denied', 'access-denied', 'access-denied'];
    expect(await attemptAll('')).toEqual(denied);
  });

  it('is not reached by a client that does not trust its certificate', async () => {
    const client = EventStoreDBClient.connectionString(
      `esdb://admin:changeit@localhost:${server.port}?tls=true`,
    );
    await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
    await client.dispose();
  });

  it('creates users over HTTP with 201, and responds 409 to another password and 401 to others than admins', async () => {
    const agent = new Agent({ connect: { ca: selfSignedCertificate } });
    const create = async (body: object, as = 'admin:changeit') => {
      const { statusCode, headers } = await request(`https://localhost:${server.port}/users/`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(as).toString('base64')}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ fullName: 'A till', groups: [], ...body }),
        dispatcher: agent,
      });
      return [statusCode, headers['location']];
    };
    const location = `https://localhost:${server.port}/users/till`;
    expect(await create({ loginName: 'till', password: 'first' })).toEqual([201, location]);
    expect(await create({ loginName: 'till', password: 'first' })).toEqual([201, location]);
    expect(await create({ loginName: 'till', password: 'second' })).toEqual([409, undefined]);
    expect(await create({ loginName: 'other', password: 'p' }, 'till:first')).toEqual([
      401,
      undefined,
    ]);
    expect(await create({ loginName: 'other', password: 'p' }, 'admin:no')).toEqual([
      401,
      undefined,
    ]);
    expect((await attemptAll('till:first@'))[0]).toBe('done');
    expect((await attemptAll('till:second@'))[0]).toBe('access-denied');
    await agent.close();
  });

  it('lets only administrators delete once the default ACL says so', async () => {
    const admin = EventStoreDBClient.connectionString(address('admin:changeit@'));
    const till = EventStoreDBClient.connectionString(address('till:first@'));
    const stream = newStream();
    await till.appendToStream(stream, event());
    expect(await findOutcome(till.deleteStream(stream))).toBe('done');
    await admin.appendToStream(
      '$settings',
      jsonEvent({ type: 'update-default-acl', data: { $userStreamAcl: { $d: ['$admins'] } } }),
    );
    expect(await findOutcome(till.deleteStream(stream))).toBe('access-denied');
    expect(await findOutcome(till.tombstoneStream(stream))).toBe('access-denied');
    expect(await findOutcome(admin.tombstoneStream(stream))).toBe('done');
    await admin.dispose();
    await till.dispose();
  });

  it('refuses users without TLS, since the client would send no credentials', async () => {
    await expect(startEventStoreDb({ users: { admin: 'changeit' } })).rejects.toThrow('need tls');
  });
});

describe('streams that an administrator trims', () => {
  const readRevisions = async (client: EventStoreDBClient, stream: string, backwards = false) => {
    const revisions: number[] = [];
    const end = backwards ? ({ direction: BACKWARDS, fromRevision: END } as const) : {};
    for await (const { event: read } of client.readStream(stream, end))
      revisions.push(Number(read?.revision));
    return revisions;
  };
  const countInLog = async (client: EventStoreDBClient, stream: string) =>
    (await readAll(client)).filter((read) => read.stream === stream).length;

  it.each([
    ['maxCount', { maxCount: 2 }, [3, 4]],
    ['truncateBefore', { truncateBefore: 3 }, [3, 4]],
    ['maxAge', { maxAge: 60 }, [0, 1, 2, 3, 4]],
  ])(
    'show with %s what it leaves, and $all has the rest until a scavenge',
    async (_name, settings, left) => {
      const { server, client, close } = await openStore();
      const stream = newStream();
      for (let i = 0; i < 5; i++) await client.appendToStream(stream, event());
      await client.setStreamMetadata(stream, settings);
      expect(await readRevisions(client, stream)).toEqual(left);
      expect(await readRevisions(client, stream, true)).toEqual(left.toReversed());
      expect(await countInLog(client, stream)).toBe(5);
      await client.appendToStream(stream, event(), { expectedRevision: 4n });
      server.fault.scavenge();
      await client.setStreamMetadata(stream, {});
      const after = 'maxCount' in settings ? [4, 5] : [...left, 5];
      expect(await readRevisions(client, stream)).toEqual(after);
      expect(await countInLog(client, stream)).toBe(after.length);
      await close();
    },
  );

  it('are missing once deleted, and begin anew at the next revision', async () => {
    const { client, close } = await openStore();
    const stream = newStream();
    await client.appendToStream(stream, [event(), event()]);
    await client.deleteStream(stream);
    expect(await findOutcome(readIds(client, stream))).toBe('stream-not-found');
    expect(await countInLog(client, stream)).toBe(2);
    await client.appendToStream(stream, event(), { expectedRevision: 'no_stream' });
    expect(await readRevisions(client, stream)).toEqual([2]);
    await close();
  });

  it('refuse reads and appends for good once they have a tombstone, an event without metadata', async () => {
    const { client, close } = await openStore();
    const stream = newStream();
    await client.appendToStream(stream, event());
    await client.tombstoneStream(stream);
    expect(await findOutcome(readIds(client, stream))).toBe('stream-deleted');
    expect(await findOutcome(client.appendToStream(stream, event()))).toBe('stream-deleted');
    expect((await readAll(client)).at(-1)).toMatchObject({ stream, type: '$streamDeleted' });
    await close();
  });
});

describe('the EventStoreDB emulator in an outage', () => {
  it('refuses connections until it listens again, and then serves the same client', async () => {
    const { server, client, close } = await openStore();
    const stream = newStream();
    const newEvent = event();
    await client.appendToStream(stream, newEvent);
    const recording = follow(client.subscribeToAll());
    await waitUntilCaughtUp(recording);

    await server.stopListening();
    await eventually(
      () => recording.errors,
      (errors) => errors.length === 1,
    );
    for (let i = 0; i < 3; i += 1) {
      await expect(client.appendToStream(stream, event())).rejects.toMatchObject({ code: 14 });
    }
    await server.listenAgain();
    await client.appendToStream(stream, event(), { expectedRevision: 0n });
    expect(await readIds(client, stream)).toHaveLength(2);
    await close();
  });

  describe('as a process of its own', () => {
    let directory: string;
    let log: string;

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'inkpad-eventstoredb-'));
      log = join(directory, 'log');
    });
    afterEach(() => rm(log, { force: true }));
    afterAll(() => rm(directory, { recursive: true }));

    it('keeps acknowledged events through kill -9, at the same positions', async () => {
      const first = await startEventStoreDbProcess(['--log', log]);
      const port = String(first.port);
      const client = EventStoreDBClient.connectionString(first.connectionString);
      const stream = newStream();
      const confirmedIds: string[] = [];
      const writing = (async () => {
        for (;;) {
          const group = [event(), event()];
          await client.appendToStream(stream, group);
          confirmedIds.push(...group.map(({ id }) => id));
        }
      })().catch((error: { code?: number }) => error.code);
      await eventually(
        () => confirmedIds.length,
        (length) => length > 100,
      );
      await first.kill('SIGKILL');
      expect([1, 14]).toContain(await writing);

      const second = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const events = await eventually(
        () => readIds(client, stream).catch(() => []),
        (list) => list.length > 0,
      );
      expect(events.slice(0, confirmedIds.length)).toEqual(confirmedIds);
      expect(events.length % 2).toBe(0);
      const before = await readAll(client);
      await second.kill('SIGKILL');

      // What a kill leaves of a line that was never confirmed.
      await appendFile(log, '[{"id":"half');
      const third = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const after = await eventually(
        () => readAll(client).catch(() => []),
        (list) => list.length > 0,
      );
      expect(after).toEqual(before);
      const expectedRevision = BigInt(events.length) - 1n;
      await client.appendToStream(stream, event(), { expectedRevision });
      await third.kill('SIGKILL');
      const fourth = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const last = await eventually(
        () => readIds(client, stream).catch(() => []),
        (list) => list.length > 0,
      );
      expect(last).toHaveLength(events.length + 1);
      await client.dispose();
      await fourth.kill('SIGTERM');
    });

    it('recognizes a retry after kill -9', async () => {
      const first = await startEventStoreDbProcess(['--log', log]);
      const client = EventStoreDBClient.connectionString(first.connectionString);
      const stream = newStream();
      const newEvent = event();
      await first.control('loseResponses', 1, 'silence');
      const pendingAppend = client.appendToStream(stream, newEvent, {
        expectedRevision: 'no_stream',
      });
      const failure = pendingAppend.catch((error: { code?: number }) => error.code);
      await eventually(
        async () => (await first.state()).appended,
        (appended) => appended === 1,
      );
      await first.kill('SIGKILL');
      expect(await failure).toBe(14);

      const second = await startEventStoreDbProcess(['--log', log, '--port', String(first.port)]);
      const retry = await eventually(
        () =>
          client
            .appendToStream(stream, newEvent, { expectedRevision: 'no_stream' })
            .catch(() => null),
        (result) => result !== null,
      );
      expect(retry?.nextExpectedRevision).toBe(0n);
      expect(await readIds(client, stream)).toEqual([newEvent.id]);
      await client.dispose();
      await second.kill('SIGTERM');
    });

    it('executes commands of a test over its control port', async () => {
      const store = await startEventStoreDbProcess();
      const client = EventStoreDBClient.connectionString(store.connectionString);
      await store.control('failAppends', 1, 'unavailable');
      await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
      await store.control('stopListening');
      await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
      await store.control('listenAgain');
      await client.appendToStream(newStream(), event());

      expect(await store.state()).toMatchObject({ appended: 1, subscriptions: 0 });
      await expect(store.control('noSuchFault' as 'listenAgain')).rejects.toThrow('no such fault');
      await client.dispose();
      await store.kill('SIGTERM');
    });
  });
});
