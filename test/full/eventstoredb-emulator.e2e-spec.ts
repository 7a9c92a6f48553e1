import { randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import {
  startEventStoreDb,
  type EventStoreDb,
  type EventStoreDbOptions,
} from '../support/emulators/eventstoredb/server.mjs';

const event = (type = 'Stamped', id = randomUUID()) =>
  jsonEvent({ id, type, data: { stamps: 1 }, metadata: { by: 'test' } });
const newStream = (category = 'card') => `${category}-${randomUUID()}`;

type Store = { server: EventStoreDb; client: EventStoreDBClient; close: () => Promise<void> };

async function open(options: EventStoreDbOptions = {}, parameters = ''): Promise<Store> {
  const server = await startEventStoreDb(options);
  const client = EventStoreDBClient.connectionString(`${server.connectionString}${parameters}`);
  const close = async () => {
    await client.dispose();
    await server.stop();
  };
  return { server, client, close };
}

async function ids(client: EventStoreDBClient, stream: string): Promise<string[]> {
  const readIds: string[] = [];
  for await (const { event: read } of client.readStream(stream)) readIds.push(read?.id ?? '');
  return readIds;
}

type Read = { id: string; stream: string; type: string; position: Position };

async function all(
  client: EventStoreDBClient,
  options: Parameters<EventStoreDBClient['readAll']>[0] = {},
): Promise<Read[]> {
  const events: Read[] = [];
  for await (const { event: read } of client.readAll(options)) {
    if (!read) throw new Error('a link without its event');
    const { id, streamId: stream, type, position } = read;
    events.push({ id, stream, type, position });
  }
  return events;
}

type Followed = {
  seen: Read[];
  caughtUp: number;
  confirmed: number;
  errors: string[];
  subscription: AllStreamSubscription | StreamSubscription;
};

function follow(subscription: AllStreamSubscription | StreamSubscription): Followed {
  const followed: Followed = { seen: [], caughtUp: 0, confirmed: 0, errors: [], subscription };
  subscription.on('confirmation', () => (followed.confirmed += 1));
  subscription.on('caughtUp', () => (followed.caughtUp += 1));
  subscription.on('error', (error) => {
    followed.errors.push('type' in error ? String(error.type) : String(error));
  });
  subscription.on('data', ({ event: read }) => {
    if (!read?.position) throw new Error('an event without its position');
    const { id, streamId: stream, type, position } = read;
    followed.seen.push({ id, stream, type, position });
  });
  return followed;
}

const caughtUp = (followed: Followed) =>
  eventually(
    () => followed.caughtUp,
    (times) => times === 1,
  );

const seenIds = (followed: Followed) => followed.seen.map(({ id }) => id);

const sees = (followed: Followed, expected: string[]) =>
  eventually(
    () => seenIds(followed),
    (seen) => seen.length >= expected.length,
  );

describe.each([
  ['batch append', { batchAppend: true }],
  ['unary append', { batchAppend: false }],
])('the EventStoreDB emulator, %s', (path, options) => {
  const batch = options.batchAppend;
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ server, client, close } = await open(options));
  });
  afterEach(() => server.fault.clear());
  afterAll(() => close());

  const append = (
    stream: string,
    events: Parameters<EventStoreDBClient['appendToStream']>[1],
    expectedRevision: AppendExpectedRevision,
  ) => client.appendToStream(stream, events, { expectedRevision });

  it('writes at the expected revision: no_stream, exact, stream_exists, any', async () => {
    const stream = newStream();
    const first = await append(stream, event(), 'no_stream');
    const second = await append(stream, [event(), event()], 0n);
    const third = await append(stream, event(), 'stream_exists');
    const fourth = await append(stream, event(), 'any');

    const revisions = [first, second, third, fourth].map((each) => each.nextExpectedRevision);
    expect(revisions).toEqual([0n, 2n, 3n, 4n]);
    const last = (await all(client, { direction: BACKWARDS, fromPosition: END })).find(
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
    'answers expected %s, with %d events there, as a conflict',
    async (expected, there, actual) => {
      const stream = newStream();
      for (let i = 0; i < there; i += 1) await append(stream, event(), 'any');
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

  it('treats the same ids at the same expected revision as a repetition, however old', async () => {
    const stream = newStream();
    const old = [event(), event()];
    const first = await append(stream, old, 'no_stream');
    const second = await append(stream, [event(), event(), event()], 1n);
    for (let i = 0; i < 300; i += 1) await append(stream, event(), 'any');
    const before = await ids(client, stream);

    expect(await append(stream, old, 'no_stream')).toEqual(first);
    expect(await append(stream, old[0] ?? [], 'no_stream')).toMatchObject({
      success: true,
      nextExpectedRevision: 0n,
    });
    expect(second.nextExpectedRevision).toBe(4n);
    expect(await ids(client, stream)).toEqual(before);
  });

  it('treats partly equal ids, and equal ids elsewhere, as a conflict', async () => {
    const stream = newStream();
    const [one, two] = [event(), event()];
    await append(stream, [one, two], 'no_stream');
    const conflict = { type: 'wrong-expected-version', actualVersion: 1n };

    await expect(append(stream, [one, event()], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, [event(), two], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, [one, two, event()], 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, two, 'no_stream')).rejects.toMatchObject(conflict);
    await expect(append(stream, two, 7n)).rejects.toMatchObject(conflict);
    expect(await ids(client, stream)).toEqual([one.id, two.id]);
  });

  it('ignores ids when the expected revision is the current one', async () => {
    const stream = newStream();
    const one = event();
    await append(stream, one, 'no_stream');
    await append(stream, one, 0n);

    expect(await ids(client, stream)).toEqual([one.id, one.id]);
  });

  it('remembers recent ids only for any and stream_exists', async () => {
    const forgetful = await open({ ...options, recentIds: 3 });
    const stream = newStream();
    const [old, recent] = [event(), event()];
    const write = (each: typeof old | (typeof old)[], expectedRevision: AppendExpectedRevision) =>
      forgetful.client.appendToStream(stream, each, { expectedRevision });
    await write(old, 'any');
    await write([event(), recent], 'any');

    await write(recent, 'any');
    await write(recent, 'stream_exists');
    expect(await ids(forgetful.client, stream)).toHaveLength(3);
    await expect(write([recent, event()], 'any')).rejects.toMatchObject({
      type: 'wrong-expected-version',
      expectedVersion: 'any',
    });
    await write(event(), 'any');
    await write(old, 'any');
    expect((await ids(forgetful.client, stream)).filter((id) => id === old.id)).toHaveLength(2);
    await forgetful.close();
  });

  it('writes the events of one append together or not at all', async () => {
    const stream = newStream();
    const groups = Array.from({ length: 20 }, () => [event(), event(), event()]);
    await Promise.all(groups.map((group) => append(stream, group, 'any')));
    await expect(append(stream, [event(), event()], 3n)).rejects.toThrow('');

    const written = await ids(client, stream);
    expect(written).toHaveLength(60);
    for (const group of groups) {
      const at = written.indexOf(group[0]?.id ?? '');
      expect(written.slice(at, at + 3)).toEqual(group.map(({ id }) => id));
    }
  });

  it('refuses an append that is larger than it allows', async () => {
    const stream = newStream();
    // The type counts two bytes a letter.
    const half = () => binaryEvent({ type: 'Half', data: Buffer.alloc(524_280) });
    await append(stream, [half(), half()], 'no_stream');
    const refused = { type: 'maximum-append-size-exceeded', maxAppendSize: 1_048_576 };

    await expect(append(stream, [half(), half(), event()], 1n)).rejects.toMatchObject(refused);
    const huge = binaryEvent({ type: 'Huge', data: Buffer.alloc(4_000_000) });
    await expect(append(stream, [half(), huge, half()], 1n)).rejects.toMatchObject(refused);
    expect(await ids(client, stream)).toHaveLength(2);
  });

  it('keeps bytes, content type, names and the time of the append', async () => {
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

  it('answers an append of no events without writing', async () => {
    const stream = newStream();
    await append(stream, event(), 'no_stream');

    expect(await append(stream, [], 0n)).toMatchObject({ success: true, nextExpectedRevision: 0n });
    await expect(append(stream, [], 'no_stream')).rejects.toMatchObject({
      type: 'wrong-expected-version',
    });
    expect(await ids(client, stream)).toHaveLength(1);
  });

  it('exceeds the deadline of an append that it has written', async () => {
    const stream = newStream();
    server.fault.delayAnswers(60_000);
    await expect(
      client.appendToStream(stream, event(), { expectedRevision: 'no_stream', deadline: 100 }),
    ).rejects.toMatchObject({ type: 'deadline-exceeded' });

    server.fault.clear();
    expect(await ids(client, stream)).toHaveLength(1);
  });

  it('responds with a timeout after its own limit, and has written the append', async () => {
    const impatient = await open({ ...options, writeTimeoutMs: 20 });
    const stream = newStream();
    impatient.server.fault.delayAnswers(60_000);
    await expect(impatient.client.appendToStream(stream, event())).rejects.toMatchObject({
      type: batch ? 'deadline-exceeded' : 'timeout',
    });

    impatient.server.fault.clear();
    expect(await ids(impatient.client, stream)).toHaveLength(1);
    await impatient.close();
  });

  it('responds late', async () => {
    server.fault.delayAnswers(50);
    const startedAt = performance.now();
    await append(newStream(), event(), 'no_stream');

    expect(performance.now() - startedAt).toBeGreaterThan(45);
  });

  it.each([
    ['unavailable', 'unavailable'],
    ['not-ready', batch ? 'unknown' : 'unavailable'],
    ['timeout', batch ? 'deadline-exceeded' : 'timeout'],
  ] as const)('fails appends before they are written: %s', async (how, type) => {
    const stream = newStream();
    const one = event();
    const before = server.appended;
    server.fault.failAppends(2, how);

    await expect(append(stream, one, 'no_stream')).rejects.toMatchObject({ type });
    await expect(append(stream, one, 'no_stream')).rejects.toMatchObject({ type });
    expect(server.appended).toBe(before);
    await append(stream, one, 'no_stream');
    expect(await ids(client, stream)).toEqual([one.id]);
  });

  it('writes and drops the connection: a repetition resolves the unknown outcome', async () => {
    const stream = newStream();
    const one = event();
    server.fault.loseResponses(2, 'drop');

    await expect(append(stream, one, 'no_stream')).rejects.toMatchObject({ type: 'unavailable' });
    await expect(append(stream, one, 'no_stream')).rejects.toMatchObject({ type: 'unavailable' });
    expect(await append(stream, one, 'no_stream')).toMatchObject({ nextExpectedRevision: 0n });
    expect(await ids(client, stream)).toEqual([one.id]);
  });

  it('writes and never answers', async () => {
    const silent = await open(options);
    const stream = newStream();
    silent.server.fault.loseResponses(1, 'silence');
    let settled = false;
    const lost = silent.client
      .appendToStream(stream, event(), { deadline: 60_000 })
      .then(String, String)
      .finally(() => (settled = true));
    await eventually(
      () => silent.server.appended,
      (appended) => appended === 1,
    );

    expect(await ids(silent.client, stream)).toHaveLength(1);
    expect(settled).toBe(false);
    await silent.close();
    await lost;
  });

  it('redirects the client to another leader', async () => {
    const other = await open(options);
    const follower = EventStoreDBClient.connectionString(server.connectionString);
    const stream = newStream();
    server.fault.notLeader(1, { port: other.server.port });

    await expect(follower.appendToStream(stream, event())).rejects.toMatchObject({
      type: 'not-leader',
      leader: { address: '127.0.0.1', port: other.server.port },
    });
    await follower.appendToStream(stream, event());
    expect(other.server.appended).toBe(1);
    await follower.dispose();
    await other.close();
  });

  it(`is reached by ${path}`, async () => {
    server.fault.failAppends(1, 'not-ready');
    await expect(append(newStream(), event(), 'any')).rejects.toMatchObject({
      type: batch ? 'unknown' : 'unavailable',
    });
  });

  it('is reached by unary append when a call brings its own credentials', async () => {
    server.fault.failAppends(1, 'not-ready');
    const credentials = { username: 'someone', password: 'else' };
    await expect(
      client.appendToStream(newStream(), event(), { credentials }),
    ).rejects.toMatchObject({ type: 'unavailable' });
  });
});

describe('reads from the EventStoreDB emulator', () => {
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;
  const stream = newStream();
  const written = Array.from({ length: 100 }, () => event());
  const writtenIds = written.map(({ id }) => id);

  beforeAll(async () => {
    ({ server, client, close } = await open());
    for (const each of written) await client.appendToStream(stream, each);
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

  it('reads a stream from a revision on, that one included', async () => {
    expect(await revisions({ fromRevision: START, maxCount: 3 })).toEqual([0, 1, 2]);
    expect(await revisions({ fromRevision: 97n })).toEqual([97, 98, 99]);
    expect(await revisions({ fromRevision: 100n })).toEqual([]);
    expect(await revisions({ fromRevision: END })).toEqual([]);
    expect(await revisions({})).toHaveLength(100);
  });

  it('reads a stream backwards from a revision, that one included', async () => {
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

  it('reads $all by positions that rise, with gaps, and holds system events', async () => {
    const everything = await all(client);

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

  it('reads $all from a position on, that one included', async () => {
    const everything = await all(client);
    const middle = everything[50];
    const fromPosition = middle?.position ?? START;

    expect(await all(client, { fromPosition })).toEqual(everything.slice(50));
    expect(await all(client, { fromPosition, maxCount: 2 })).toEqual(everything.slice(50, 52));
    expect(await all(client, { fromPosition: START, maxCount: 1 })).toEqual([everything[0]]);
    expect(await all(client, { fromPosition: { commit: 0n, prepare: 0n } })).toEqual(everything);
    expect(await all(client, { fromPosition: END })).toEqual([]);
  });

  it('reads $all backwards from before a position', async () => {
    const everything = await all(client);
    const backwards = everything.toReversed();
    const direction = BACKWARDS;
    const fromPosition = everything[50]?.position ?? START;

    expect(await all(client, { direction, fromPosition: END })).toEqual(backwards);
    expect(await all(client, { direction, fromPosition: END, maxCount: 1 })).toEqual(
      everything.slice(-1),
    );
    expect(await all(client, { direction, fromPosition })).toEqual(
      everything.slice(0, 50).toReversed(),
    );
    expect(await all(client, { direction, fromPosition: START })).toEqual([]);
  });

  it('refuses a position that it never gave', async () => {
    const [first] = await all(client, { maxCount: 1 });
    const commit = (first?.position.commit ?? 0n) + 1n;
    const invalid = { code: 3 };

    await expect(all(client, { fromPosition: { commit, prepare: commit } })).rejects.toMatchObject(
      invalid,
    );
    await expect(all(client, { fromPosition: { commit: 0n, prepare: 1n } })).rejects.toMatchObject(
      invalid,
    );
  });

  it('cuts a read in the middle', async () => {
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

  it('gives a cluster of one to a client that discovers', async () => {
    const discovering = EventStoreDBClient.connectionString(
      server.connectionString.replace('esdb:', 'esdb+discover:'),
    );
    expect(await ids(discovering, stream)).toHaveLength(100);
    await discovering.dispose();
  });
});

describe('subscriptions to the EventStoreDB emulator', () => {
  let server: EventStoreDb;
  let client: EventStoreDBClient;
  let close: () => Promise<void>;

  beforeAll(async () => {
    ({ server, client, close } = await open());
    for (let i = 0; i < 50; i += 1) await client.appendToStream(newStream(), event());
  });
  afterEach(async () => {
    server.fault.clear();
    await eventually(
      () => server.subscriptions,
      (open) => open === 0,
    );
  });
  afterAll(() => close());

  it('follow $all from its start and go on live', async () => {
    const followed = follow(client.subscribeToAll({ fromPosition: START }));
    await caughtUp(followed);
    const there = seenIds(followed);
    expect(followed.confirmed).toBe(1);

    const [one, two] = [event(), event()];
    await client.appendToStream(newStream(), [one, two]);
    await eventually(
      () => seenIds(followed).includes(two.id),
      (seen) => seen,
    );
    expect((await all(client)).map(({ id }) => id)).toEqual(seenIds(followed));
    expect(seenIds(followed).slice(there.length)).toEqual(expect.arrayContaining([one.id, two.id]));
    await followed.subscription.unsubscribe();
  });

  it('start after the requested position', async () => {
    const everything = await all(client);
    const fromPosition = everything[20]?.position ?? START;
    const followed = follow(client.subscribeToAll({ fromPosition }));
    await caughtUp(followed);

    expect(followed.seen).toEqual(everything.slice(21));
    await followed.subscription.unsubscribe();
  });

  it('start at the end, and deliver only new events', async () => {
    const followed = follow(
      client.subscribeToAll({ fromPosition: END, filter: streamNameFilter({ prefixes: ['x-'] }) }),
    );
    await caughtUp(followed);
    const one = event();
    await client.appendToStream(newStream('x'), one);
    await sees(followed, [one.id]);

    expect(seenIds(followed)).toEqual([one.id]);
    await followed.subscription.unsubscribe();
  });

  it('stay silent up to a position ahead of the log', async () => {
    const [last] = await all(client, { direction: BACKWARDS, fromPosition: END, maxCount: 1 });
    const commit = (last?.position.commit ?? 0n) + 1_000n;
    const followed = follow(client.subscribeToAll({ fromPosition: { commit, prepare: commit } }));
    await caughtUp(followed);
    for (let i = 0; i < 20; i += 1) await client.appendToStream(newStream(), event());
    const ahead = (await all(client)).filter(({ position }) => position.commit > commit);
    await sees(
      followed,
      ahead.map(({ id }) => id),
    );

    expect(followed.seen).toEqual(ahead);
    await followed.subscription.unsubscribe();
  });

  it('deliver events with one of the prefixes, before and after they are live', async () => {
    const kinds = ['a', 'b', 'c'];
    const write = async () => {
      for (const kind of kinds) await client.appendToStream(newStream(`${kind}kind`), event(kind));
    };
    await write();
    const followed = follow(
      client.subscribeToAll({ filter: streamNameFilter({ prefixes: ['akind-', 'ckind-'] }) }),
    );
    await caughtUp(followed);
    await write();
    await sees(followed, Array.from({ length: 4 }, String));

    expect(followed.seen.map(({ type }) => type)).toEqual(['a', 'c', 'a', 'c']);
    await followed.subscription.unsubscribe();
  });

  it('exclude system events by a regular expression on the type', async () => {
    const followed = follow(client.subscribeToAll({ filter: excludeSystemEvents() }));
    await caughtUp(followed);
    const ours = (await all(client)).filter(({ type }) => !type.startsWith('$'));

    expect(followed.seen).toEqual(ours);
    await followed.subscription.unsubscribe();
  });

  it('report checkpoints while catching up, even when the filter excludes everything', async () => {
    const everything = await all(client);
    const checkpoints: Position[] = [];
    const followed = follow(
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
    await caughtUp(followed);

    expect(followed.seen).toEqual([]);
    const commits = checkpoints.map(({ commit }) => commit);
    const full = Math.floor(everything.length / 10);
    expect(commits.length).toBeGreaterThanOrEqual(full - 1);
    expect(commits.length).toBeLessThanOrEqual(full);
    expect(commits.toSorted((a, b) => Number(a - b))).toEqual(commits);
    for (const [index, commit] of commits.entries()) {
      const lookedAt = everything[(index + 1) * 10 - 1];
      expect(commit).toBeLessThanOrEqual(lookedAt?.position.commit ?? 0n);
    }
    await followed.subscription.unsubscribe();
  });

  it('report checkpoints while live, every multiplier times window events', async () => {
    const checkpoints: Position[] = [];
    const followed = follow(
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
    await caughtUp(followed);
    const before = (await all(client)).length;
    for (let i = 0; i < 24; i += 1) await client.appendToStream(newStream(), event());
    const after = (await all(client)).slice(before);
    const expected = after.filter((_, index) => index % 6 === 5).map(({ position }) => position);
    await eventually(
      () => checkpoints.length,
      (length) => length === expected.length,
    );

    expect(checkpoints).toEqual(expected);
    await followed.subscription.unsubscribe();
  });

  it('lose and repeat nothing when they resume at a checkpoint', async () => {
    const checkpoints: { position: Position; seen: number }[] = [];
    const filter = { prefixes: ['card-'], maxSearchWindow: 3 };
    const whole = follow(
      client.subscribeToAll({
        filter: streamNameFilter({
          ...filter,
          checkpointReached: async (_, position) => {
            checkpoints.push({ position, seen: 0 });
          },
        }),
      }),
    );
    await caughtUp(whole);
    await whole.subscription.unsubscribe();
    expect(checkpoints.length).toBeGreaterThan(10);

    for (const { position } of checkpoints.slice(0, 10)) {
      const again = follow(
        client.subscribeToAll({ fromPosition: position, filter: streamNameFilter(filter) }),
      );
      await caughtUp(again);
      const after = whole.seen.filter((read) => read.position.commit > position.commit);
      const at = whole.seen.filter((read) => read.position.commit === position.commit);
      const expected = position.prepare < position.commit ? [...at, ...after] : after;
      expect(again.seen).toEqual(expected);
      await again.subscription.unsubscribe();
    }
  });

  it('keep up with a writer without a gap', async () => {
    const filter = streamNameFilter({ prefixes: ['rush-'] });
    const followed = follow(client.subscribeToAll({ filter }));
    const events = Array.from({ length: 500 }, () => event());
    await Promise.all(events.map((each) => client.appendToStream(newStream('rush'), each)));
    await sees(
      followed,
      events.map(({ id }) => id),
    );

    const ordered = (await all(client)).filter((read) => read.stream.startsWith('rush-'));
    expect(followed.seen).toEqual(ordered);
    await followed.subscription.unsubscribe();
  });

  it('follow one stream after a revision, even before it exists', async () => {
    const stream = newStream();
    const early = follow(client.subscribeToStream(stream));
    await caughtUp(early);
    const events = Array.from({ length: 5 }, () => event());
    await client.appendToStream(stream, events);
    const late = follow(client.subscribeToStream(stream, { fromRevision: 2n }));
    const atEnd = follow(client.subscribeToStream(stream, { fromRevision: END }));
    await caughtUp(late);
    await caughtUp(atEnd);
    const last = event();
    await client.appendToStream(stream, last);
    const expected = [...events, last].map(({ id }) => id);
    await sees(early, expected);
    await sees(late, expected.slice(3));
    await sees(atEnd, [last.id]);

    expect(seenIds(early)).toEqual(expected);
    expect(seenIds(late)).toEqual(expected.slice(3));
    expect(seenIds(atEnd)).toEqual([last.id]);
    for (const each of [early, late, atEnd]) await each.subscription.unsubscribe();
  });

  it.each([
    ['cancelled', 'cancelled'],
    ['unavailable', 'unavailable'],
    ['too-slow', 'timeout'],
    ['connection', 'unavailable'],
  ] as const)('are dropped: %s', async (how, type) => {
    const followed = follow(client.subscribeToAll());
    await caughtUp(followed);
    server.fault.dropSubscriptions(how);
    await eventually(
      () => followed.errors,
      (errors) => errors.length > 0,
    );

    expect(followed.errors).toEqual([type]);
  });

  it('resume after the last delivered event when cut while catching up', async () => {
    const everything = await all(client);
    server.fault.cutReads(1, 30);
    const first = follow(client.subscribeToAll());
    await eventually(
      () => first.errors,
      (errors) => errors.length > 0,
    );
    expect(first.errors).toEqual(['unavailable']);
    expect(first.seen.length).toBeLessThanOrEqual(30);
    expect(first.caughtUp).toBe(0);

    const fromPosition = first.seen.at(-1)?.position ?? START;
    const second = follow(client.subscribeToAll({ fromPosition }));
    await caughtUp(second);
    expect([...first.seen, ...second.seen]).toEqual(everything);
    await second.subscription.unsubscribe();
  });

  it('lose nothing with a slow reader', async () => {
    // A connection of its own: the tests above have cut the other one.
    const { client: own, close } = await open();
    try {
      const stream = newStream();
      const data = Buffer.alloc(20_000);
      const events = Array.from({ length: 400 }, () => binaryEvent({ type: 'Large', data }));
      for (let i = 0; i < 400; i += 40) {
        await own.appendToStream(stream, events.slice(i, i + 40));
      }
      const subscription = own.subscribeToStream(stream, {}, { highWaterMark: 1 });
      const ids: string[] = [];
      for await (const { event: read } of subscription) {
        ids.push(read?.id ?? '');
        await new Promise(setImmediate);
        if (ids.length === events.length) await subscription.unsubscribe();
      }
      expect(ids).toEqual(events.map(({ id }) => id));
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

  const attempts = async (user: string) => {
    const client = EventStoreDBClient.connectionString(address(user));
    const stream = newStream();
    const credentials = user === '' ? undefined : { username: 'admin', password: 'wrong' };
    const outcomes = [
      await outcome(client.appendToStream(stream, event())),
      await outcome(
        client.appendToStream(stream, event(), { ...(credentials && { credentials }) }),
      ),
      await outcome(all(client, { maxCount: 1 })),
    ];
    await client.dispose();
    return outcomes;
  };
  const outcome = (attempt: Promise<unknown>) =>
    attempt.then(
      () => 'done',
      (error: { type?: string }) => error.type,
    );

  it('accepts the right password on each call', async () => {
    expect(await attempts('admin:changeit@')).toEqual(['done', 'access-denied', 'done']);
  });

  it('refuses a wrong password and an unknown name', async () => {
    const denied = ['access-denied', 'access-denied', 'access-denied'];
    expect(await attempts('admin:other@')).toEqual(denied);
    expect(await attempts('toString:changeit@')).toEqual(denied);
  });

  it('refuses a call without a password', async () => {
    const denied = ['access-denied', 'access-denied', 'access-denied'];
    expect(await attempts('')).toEqual(denied);
  });

  it('is not reached by a client that does not trust its certificate', async () => {
    const client = EventStoreDBClient.connectionString(
      `esdb://admin:changeit@localhost:${server.port}?tls=true`,
    );
    await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
    await client.dispose();
  });

  it('answers the creation of users as its HTTP API does', async () => {
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
    expect((await attempts('till:first@'))[0]).toBe('done');
    expect((await attempts('till:second@'))[0]).toBe('access-denied');
    await agent.close();
  });

  it('lets only administrators delete once the default says so', async () => {
    const admin = EventStoreDBClient.connectionString(address('admin:changeit@'));
    const till = EventStoreDBClient.connectionString(address('till:first@'));
    const stream = newStream();
    await till.appendToStream(stream, event());
    expect(await outcome(till.deleteStream(stream))).toBe('unknown');
    await admin.appendToStream(
      '$settings',
      jsonEvent({ type: 'update-default-acl', data: { $userStreamAcl: { $d: ['$admins'] } } }),
    );
    expect(await outcome(till.deleteStream(stream))).toBe('access-denied');
    expect(await outcome(till.tombstoneStream(stream))).toBe('access-denied');
    expect(await outcome(admin.deleteStream(stream))).toBe('unknown');
    await admin.dispose();
    await till.dispose();
  });

  it('has users with TLS only, since the client sends no credentials otherwise', async () => {
    await expect(startEventStoreDb({ users: { admin: 'changeit' } })).rejects.toThrow('need tls');
  });
});

describe('outages of the EventStoreDB emulator', () => {
  it('refuses connections until it listens again, and then serves the same client', async () => {
    const { server, client, close } = await open();
    const stream = newStream();
    const one = event();
    await client.appendToStream(stream, one);
    const followed = follow(client.subscribeToAll());
    await caughtUp(followed);

    await server.stopListening();
    await eventually(
      () => followed.errors,
      (errors) => errors.length === 1,
    );
    for (let i = 0; i < 3; i += 1) {
      await expect(client.appendToStream(stream, event())).rejects.toMatchObject({ code: 14 });
    }
    await server.listenAgain();
    await client.appendToStream(stream, event(), { expectedRevision: 0n });
    expect(await ids(client, stream)).toHaveLength(2);
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
      const answered: string[] = [];
      const writing = (async () => {
        for (;;) {
          const group = [event(), event()];
          await client.appendToStream(stream, group);
          answered.push(...group.map(({ id }) => id));
        }
      })().catch((error: { code?: number }) => error.code);
      await eventually(
        () => answered.length,
        (length) => length > 100,
      );
      await first.kill('SIGKILL');
      expect([1, 14]).toContain(await writing);

      const second = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const events = await eventually(
        () => ids(client, stream).catch(() => []),
        (list) => list.length > 0,
      );
      expect(events.slice(0, answered.length)).toEqual(answered);
      expect(events.length % 2).toBe(0);
      const before = await all(client);
      await second.kill('SIGKILL');

      // What a kill leaves of a line that was never answered.
      await appendFile(log, '[{"id":"half');
      const third = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const after = await eventually(
        () => all(client).catch(() => []),
        (list) => list.length > 0,
      );
      expect(after).toEqual(before);
      const expectedRevision = BigInt(events.length) - 1n;
      await client.appendToStream(stream, event(), { expectedRevision });
      await third.kill('SIGKILL');
      const fourth = await startEventStoreDbProcess(['--log', log, '--port', port]);
      const last = await eventually(
        () => ids(client, stream).catch(() => []),
        (list) => list.length > 0,
      );
      expect(last).toHaveLength(events.length + 1);
      await client.dispose();
      await fourth.kill('SIGTERM');
    });

    it('takes the same ids at the same expected revision as the same append after kill -9', async () => {
      const first = await startEventStoreDbProcess(['--log', log]);
      const client = EventStoreDBClient.connectionString(first.connectionString);
      const stream = newStream();
      const one = event();
      await first.tell('loseResponses', 1, 'silence');
      const lost = client.appendToStream(stream, one, { expectedRevision: 'no_stream' });
      const failure = lost.catch((error: { code?: number }) => error.code);
      await eventually(
        async () => (await first.state()).appended,
        (appended) => appended === 1,
      );
      await first.kill('SIGKILL');
      expect(await failure).toBe(14);

      const second = await startEventStoreDbProcess(['--log', log, '--port', String(first.port)]);
      const repeated = await eventually(
        () =>
          client.appendToStream(stream, one, { expectedRevision: 'no_stream' }).catch(() => null),
        (result) => result !== null,
      );
      expect(repeated?.nextExpectedRevision).toBe(0n);
      expect(await ids(client, stream)).toEqual([one.id]);
      await client.dispose();
      await second.kill('SIGTERM');
    });

    it('executes commands of a test over its control port', async () => {
      const store = await startEventStoreDbProcess();
      const client = EventStoreDBClient.connectionString(store.connectionString);
      await store.tell('failAppends', 1, 'unavailable');
      await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
      await store.tell('stopListening');
      await expect(client.appendToStream(newStream(), event())).rejects.toMatchObject({ code: 14 });
      await store.tell('listenAgain');
      await client.appendToStream(newStream(), event());

      expect(await store.state()).toMatchObject({ appended: 1, subscriptions: 0 });
      await expect(store.tell('noSuchFault' as 'listenAgain')).rejects.toThrow('no such fault');
      await client.dispose();
      await store.kill('SIGTERM');
    });
  });
});
