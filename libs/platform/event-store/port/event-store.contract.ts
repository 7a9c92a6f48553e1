import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomInt, randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { Awaitable } from '#platform/kernel/awaitable.js';
import {
  BEGINNING,
  ClaimTakenError,
  ConflictError,
  type EventStore,
  type Head,
  type NewEvent,
  type Position,
  type StoredEvent,
} from './event-store.js';
import { hashEvent } from './hash-chain.js';
import { isAfter } from './position.js';

/** The tests that every adapter of the event store has to pass. */
export function eventStoreContract(
  engine: string,
  open: () => Promise<{
    store: EventStore;
    close: () => Promise<void>;
    /** The database that keeps claims and personal keys. */
    database: Pick<Pool, 'query'>;
  }>,
): void {
  describe(`event store on ${engine}`, () => {
    let eventStore: EventStore;
    let close: () => Promise<void>;
    let query: (text: string, values: unknown[]) => Promise<{ rowCount: number | null }>;

    beforeAll(async () => {
      const adapter = await open();
      ({ store: eventStore, close } = adapter);
      query = (text, values) => adapter.database.query(text, values);
    });
    afterAll(() => close());

    const append = (stream: string, expected: Parameters<typeof write>[1], ...events: NewEvent[]) =>
      eventStore.commit({ accountId: 1, writes: [write(stream, expected, ...events)] });

    describe('commit', () => {
      it('begins a stream and returns its head', async () => {
        const stream = newStream();
        const [head] = await append(stream, null, event('A'), event('B'));
        expect(head).toMatchObject({ revision: 1 });
        expect(await read(eventStore, stream)).toMatchObject([
          { revision: 0, type: 'A', stream },
          { revision: 1, type: 'B', hash: head?.hash },
        ]);
      });

      it('appends at the expected revision', async () => {
        const stream = newStream();
        const [first] = await append(stream, null, event('A'));
        const [second] = await append(stream, first ?? null, event('B'));
        expect(second?.revision).toBe(1);
      });

      it('refuses any revision but the expected one and writes nothing', async () => {
        const stream = newStream();
        const [first] = await append(stream, null, event('A'));
        await append(stream, first ?? null, event('B'));
        await expect(append(stream, first ?? null, event('C'))).rejects.toThrow(ConflictError);
        await expect(append(stream, null, event('C'))).rejects.toThrow(ConflictError);
        const future = { revision: 9, hash: first?.hash ?? '' };
        await expect(append(stream, future, event('C'))).rejects.toThrow(ConflictError);
        expect(await readTypes(eventStore, stream)).toEqual(['A', 'B']);
      });

      it('lets exactly one of many writers win the same revision', async () => {
        const stream = newStream();
        const [head] = await append(stream, null, event('A'));
        const results = await Promise.allSettled(
          Array.from({ length: 20 }, () => append(stream, head ?? null, event('B'))),
        );
        expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
        expect(await readTypes(eventStore, stream)).toEqual(['A', 'B']);
      });

      it('refuses an empty append', async () => {
        await expect(append(newStream(), null)).rejects.toThrow('empty append');
      });

      it('returns data and metadata as they were committed', async () => {
        const stream = newStream();
        const data = { text: 'Ünï ☕', nested: { list: [1, 2.5, null, true] }, empty: {} };
        const newEvent = event('A', data);
        await append(stream, null, newEvent);
        const [stored] = await read(eventStore, stream);
        expect(stored).toMatchObject({ id: newEvent.id, data, meta: newEvent.meta, version: 1 });
      });

      it('writes several streams all or none', async () => {
        const [one, two, three] = [newStream(), newStream(), newStream()];
        await append(two, null, event('Taken'));
        const commit = {
          accountId: 1,
          writes: [write(one, null, event('A')), write(two, null, event('B'))],
        };
        await expect(eventStore.commit(commit)).rejects.toThrow(ConflictError);
        expect(await readTypes(eventStore, one)).toEqual([]);
        const heads = await eventStore.commit({
          accountId: 1,
          writes: [write(one, null, event('A')), write(three, null, event('B'), event('C'))],
        });
        expect(heads.map((head) => head.revision)).toEqual([0, 1]);
        expect(await readTypes(eventStore, three)).toEqual(['B', 'C']);
      });

      it('chains every event to the one before it', async () => {
        const stream = newStream();
        const [head] = await append(stream, null, event('A'), event('B'));
        await append(stream, head ?? null, event('C'));
        let before = null;
        for (const stored of await read(eventStore, stream)) {
          expect(stored.hash).toBe(hashEvent(stream, before, stored));
          before = { revision: stored.revision, hash: stored.hash };
        }
      });
    });

    describe('a commit to several existing streams', () => {
      beforeAll(() => {
        // Where such a commit is not one transaction, a later write is decided again. Without inputs it stays as it is.
        eventStore.callbacks = {
          decideFollowUp: async (write, earlier) => {
            const expected = await readHead(write.stream);
            const { inputs } = write;
            if (inputs === undefined) return { ...write, expected };
            const n =
              inputs === 'counts'
                ? expected.revision
                : (earlier.at(-1)?.events[0]?.data['n'] ?? -1);
            return {
              ...write,
              expected,
              events: write.events.map((template) => ({ ...template, data: { n } })),
            };
          },
          canFollow: () => false,
          findBehind: async () => [],
          catchUp: async () => undefined,
        };
      });

      const readHead = async (stream: string): Promise<Head> => {
        for await (const last of eventStore.readStream(stream, { direction: 'backwards' })) {
          return getHead(last);
        }
        throw new Error(`${stream} is empty`);
      };
      const begin = async (): Promise<string> => {
        const stream = newStream();
        await append(stream, null, event('Begun'));
        return stream;
      };
      const appendTo = async (type: string, ...streams: string[]) => {
        const writes = [];
        for (const stream of streams) {
          writes.push(write(stream, await readHead(stream), event(type)));
        }
        return eventStore.commit({ accountId: 1, writes });
      };
      /** Repeats the work after every lost race. */
      const retryConflicts = async (work: () => Promise<unknown>): Promise<void> => {
        for (;;) {
          try {
            await work();
            return;
          } catch (error) {
            if (!(error instanceof ConflictError)) throw error;
          }
        }
      };

      it('writes the streams in order, and returns their heads', async () => {
        const [one, two] = [await begin(), await begin()];
        const heads = await appendTo('A', two, one);
        expect(heads).toEqual([await readHead(two), await readHead(one)]);
        expect([await readTypes(eventStore, one), await readTypes(eventStore, two)]).toEqual([
          ['Begun', 'A'],
          ['Begun', 'A'],
        ]);
      });

      it('writes nothing when any of the streams has moved', async () => {
        const [one, two, three] = [await begin(), await begin(), await begin()];
        const stale = await readHead(two);
        await appendTo('Moved', two);
        const writes = [
          write(one, await readHead(one), event('A')),
          write(two, stale, event('A')),
          write(three, await readHead(three), event('A')),
        ];
        await expect(eventStore.commit({ accountId: 1, writes })).rejects.toThrow(ConflictError);
        for (const stream of [one, three])
          expect(await readTypes(eventStore, stream)).toEqual(['Begun']);
        expect(await readTypes(eventStore, two)).toEqual(['Begun', 'Moved']);
      });

      it('loses and duplicates no event of commits to one of the streams at the same time', async () => {
        const [one, two] = [await begin(), await begin()];
        const alone = async (stream: string) => {
          for (let i = 0; i < 30; i++) await retryConflicts(() => appendTo('Alone', stream));
        };
        const both = async () => {
          for (let i = 0; i < 15; i++) await retryConflicts(() => appendTo('Both', one, two));
        };
        await Promise.all([alone(one), alone(two), alone(two), both()]);
        const count = async (stream: string, type: string) =>
          (await readTypes(eventStore, stream)).filter((candidate) => candidate === type).length;
        expect([await count(one, 'Both'), await count(two, 'Both')]).toEqual([15, 15]);
        expect([await count(one, 'Alone'), await count(two, 'Alone')]).toEqual([30, 60]);
      });

      it('decides a later write again from the outcome of an earlier one', async () => {
        const [first, countingStream, repeatingStream] = [
          await begin(),
          await begin(),
          await begin(),
        ];
        // The event of the second stream depends on how long it is, and that of the third repeats it.
        const count = async () => {
          const head = await readHead(countingStream);
          const data = { n: head.revision };
          const writes = [
            write(first, await readHead(first), event('First')),
            { ...write(countingStream, head, event('Counted', data)), inputs: 'counts' },
            {
              ...write(repeatingStream, await readHead(repeatingStream), event('Repeated', data)),
              inputs: 'repeats',
            },
          ];
          await eventStore.commit({ accountId: 1, writes });
        };
        const counting = async () => {
          for (let i = 0; i < 15; i++) await retryConflicts(count);
        };
        const lengthening = async () => {
          for (let i = 0; i < 60; i++)
            await retryConflicts(() => appendTo('Longer', countingStream));
        };
        await Promise.all([counting(), lengthening()]);
        const counts = (await read(eventStore, countingStream)).filter(
          ({ type }) => type === 'Counted',
        );
        expect(counts).toHaveLength(15);
        expect(counts.map(({ data }) => data['n'])).toEqual(
          counts.map(({ revision }) => revision - 1),
        );
        const repetitions = (await read(eventStore, repeatingStream)).filter(
          ({ type }) => type === 'Repeated',
        );
        expect(repetitions.map(({ data }) => data)).toEqual(counts.map(({ data }) => data));
      });

      it('writes concurrent commits in opposite stream orders one after another', async () => {
        const [one, two] = [await begin(), await begin()];
        await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            retryConflicts(() => appendTo(`C${i}`, ...(i % 2 === 0 ? [one, two] : [two, one]))),
          ),
        );
        const typesOfOne = await readTypes(eventStore, one);
        expect(typesOfOne).toHaveLength(21);
        expect(await readTypes(eventStore, two)).toEqual(typesOfOne);
      });

      it('moves a claim between the streams, and leaves it when it is refused', async () => {
        const [one, two] = [await begin(), await begin()];
        const value = Buffer.from(randomUUID());
        const claim = (stream: string) => ({ kind: 'email', value, stream });
        const move = async (from: string, to: string, expected: Head) =>
          eventStore.commit({
            accountId: 1,
            writes: [
              write(to, expected, event('Took')),
              write(from, await readHead(from), event('Gave')),
            ],
            claims: [claim(to)],
            releases: [claim(from)],
          });
        await eventStore.commit({
          accountId: 1,
          writes: [write(one, await readHead(one), event('Claimed'))],
          claims: [claim(one)],
        });
        const stale = await readHead(two);
        await appendTo('Moved', two);
        await expect(move(one, two, stale)).rejects.toThrow(ConflictError);
        const steal = async () => {
          const stream = newStream();
          const writes = [write(stream, null, event('A'))];
          return eventStore.commit({ accountId: 1, writes, claims: [claim(stream)] });
        };
        await expect(steal()).rejects.toThrow(ClaimTakenError);
        await move(one, two, await readHead(two));
        await expect(steal()).rejects.toThrow(ClaimTakenError);
        await move(two, one, await readHead(one));
        await expect(steal()).rejects.toThrow(ClaimTakenError);
        await eventStore.commit({
          accountId: 1,
          writes: [write(one, await readHead(one), event('Released'))],
          releases: [claim(one)],
        });
        await steal();
      });
    });

    describe('a claim', () => {
      const claim = (stream: string, value: string) => ({
        kind: 'email',
        value: Buffer.from(value),
        stream,
      });

      it('gives a value to one stream, and refuses the whole commit of the next', async () => {
        const [one, two] = [newStream(), newStream()];
        const value = randomUUID();
        const commit = (stream: string) =>
          eventStore.commit({
            accountId: 1,
            writes: [write(stream, null, event('A'))],
            claims: [claim(stream, value)],
          });
        await commit(one);
        const error = await commit(two).catch((error: unknown) => error);
        expect(error).toBeInstanceOf(ClaimTakenError);
        expect((error as ClaimTakenError).kinds).toEqual(['email']);
        expect(await readTypes(eventStore, two)).toEqual([]);
      });

      it('counts as a lost race when its own stream has it already', async () => {
        const stream = newStream();
        const value = randomUUID();
        const [head] = await append(stream, null, event('A'));
        const rename = () =>
          eventStore.commit({
            accountId: 1,
            writes: [write(stream, head ?? null, event('B'))],
            claims: [claim(stream, value)],
          });
        await rename();
        await expect(rename()).rejects.toThrow(ConflictError);
        expect(await readTypes(eventStore, stream)).toEqual(['A', 'B']);
      });

      it('is unique within its account only', async () => {
        const value = randomUUID();
        for (const accountId of [1, 2]) {
          const stream = newStream();
          await eventStore.commit({
            accountId,
            writes: [write(stream, null, event('A'))],
            claims: [claim(stream, value)],
          });
          expect(await readTypes(eventStore, stream)).toEqual(['A']);
        }
      });

      it('is won by exactly one of many streams, and free again once released', async () => {
        const value = randomUUID();
        const streams = Array.from({ length: 12 }, newStream);
        const results = await Promise.allSettled(
          streams.map((stream) =>
            eventStore.commit({
              accountId: 1,
              writes: [write(stream, null, event('A'))],
              claims: [claim(stream, value)],
            }),
          ),
        );
        const winner = results.findIndex((result) => result.status === 'fulfilled');
        expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
        const holder = streams[winner] ?? '';
        const [last] = await read(eventStore, holder);
        await eventStore.commit({
          accountId: 1,
          writes: [write(holder, last ? getHead(last) : null, event('Released'))],
          releases: [claim(holder, value)],
        });
        const next = newStream();
        await eventStore.commit({
          accountId: 1,
          writes: [write(next, null, event('A'))],
          claims: [claim(next, value)],
        });
      });
    });

    describe('an erasure', () => {
      const claim = (stream: string, value: string) => ({
        kind: 'email',
        value: Buffer.from(value),
        stream,
      });
      const erase = (stream: string, expected: Head | null, subjectId: number) =>
        eventStore.commit({
          accountId: 1,
          writes: [write(stream, expected, event('Erased'))],
          erasures: [{ subjectId, stream }],
        });
      let ids = 0;
      const newPerson = async () => {
        const subjectId = ++ids;
        // A database that knows its master key accepts only what that key has sealed.
        await query(
          `insert into personal_keys (subject_id, wrapped)
           select $1, coalesce((select '\\x696e6b01' || substring(fingerprint from 1 for 4) from master_key), '') || $2`,
          [subjectId, Buffer.alloc(60)],
        );
        return subjectId;
      };
      const keys = async (subjectId: number) =>
        (await query('select from personal_keys where subject_id = $1', [subjectId])).rowCount;

      it('destroys the key and frees every claim of the stream, with the commit', async () => {
        const [stream, value, subjectId] = [newStream(), randomUUID(), await newPerson()];
        const [head] = await eventStore.commit({
          accountId: 1,
          writes: [write(stream, null, event('A'))],
          claims: [claim(stream, value), claim(stream, `${value} too`)],
        });
        await erase(stream, head ?? null, subjectId);
        expect(await readTypes(eventStore, stream)).toEqual(['A', 'Erased']);
        expect(await keys(subjectId)).toBe(0);
        const next = newStream();
        await eventStore.commit({
          accountId: 1,
          writes: [write(next, null, event('A'))],
          claims: [claim(next, value), claim(next, `${value} too`)],
        });
      });

      it('destroys nothing when it loses its race', async () => {
        const [stream, subjectId] = [newStream(), await newPerson()];
        const [head] = await append(stream, null, event('A'));
        await append(stream, head ?? null, event('B'));
        await expect(erase(stream, head ?? null, subjectId)).rejects.toThrow(ConflictError);
        expect(await keys(subjectId)).toBe(1);
      });
    });

    describe('a side effect', () => {
      const commitWith = (stream: string, mark: string) =>
        eventStore.commit({
          accountId: 1,
          writes: [write(stream, null, event('A'))],
          sideEffects: [
            {
              text: `insert into es.positions (subscription, position) values ($1, '0:0')`,
              values: [mark],
            },
          ],
        });
      const marks = async (mark: string) =>
        (await query('delete from es.positions where subscription = $1', [mark])).rowCount;

      it('happens with the commit', async () => {
        const [stream, mark] = [newStream(), randomUUID()];
        await commitWith(stream, mark);
        expect(await readTypes(eventStore, stream)).toEqual(['A']);
        expect(await marks(mark)).toBe(1);
      });

      it('does not happen when the commit loses its race', async () => {
        const [stream, mark] = [newStream(), randomUUID()];
        await append(stream, null, event('A'));
        await expect(commitWith(stream, mark)).rejects.toThrow(ConflictError);
        expect(await marks(mark)).toBe(0);
      });
    });

    describe('readStream', () => {
      it('reads forwards and backwards from a revision, across pages', async () => {
        const stream = newStream();
        const events = Array.from({ length: 1200 }, (_, i) => event(`E${i}`));
        await append(stream, null, ...events);
        expect((await read(eventStore, stream)).map((e) => e.revision)).toEqual(range(0, 1199));
        expect((await read(eventStore, stream, { from: 1195 })).map((e) => e.type)).toEqual([
          'E1195', 'E1196', 'E1197', 'E1198', 'E1199',
        ]); // prettier-ignore
        expect((await read(eventStore, stream, { from: 2, to: 4 })).map((e) => e.revision)).toEqual(
          [2, 3, 4],
        );
        const backwards = await read(eventStore, stream, { direction: 'backwards' });
        expect(backwards.map((e) => e.revision)).toEqual(range(0, 1199).reverse());
        const fromThree = await read(eventStore, stream, { direction: 'backwards', from: 3 });
        expect(fromThree.map((e) => e.revision)).toEqual([3, 2, 1, 0]);
      });

      it('finds nothing in a stream that does not exist', async () => {
        expect(await read(eventStore, newStream())).toEqual([]);
      });
    });

    describe('readEvents', () => {
      it('finds single events of many streams, and leaves out missing ones', async () => {
        const [one, two] = [newStream(), newStream()];
        await append(one, null, event('A'), event('B'), event('C'), event('D'));
        await append(two, null, event('E'), event('F'));
        const events = await eventStore.readEvents([
          { stream: one, revision: 1 },
          { stream: two, revision: 0 },
          { stream: one, revision: 3 },
          { stream: two, revision: 7 },
          { stream: newStream(), revision: 0 },
        ]);
        expect(events.map(({ type }) => type).sort()).toEqual(['B', 'D', 'E']);
        expect(await eventStore.readEvents([])).toEqual([]);
      });
    });

    describe('findEvent', () => {
      it('finds an event by its id, in its own stream only', async () => {
        const [one, two] = [newStream(), newStream()];
        const events = Array.from({ length: 60 }, (_, i) => event(`E${i}`));
        await append(one, null, ...events);
        await append(two, null, event('F'));
        for (const revision of [0, 30, 59]) {
          const { id = '' } = events[revision] ?? {};
          expect(await eventStore.findEvent(one, id)).toMatchObject({ id, revision, stream: one });
          expect(await eventStore.findEvent(two, id)).toBeUndefined();
          expect(await eventStore.findEvent(newStream(), id)).toBeUndefined();
        }
        expect(await eventStore.findEvent(one, randomUUID())).toBeUndefined();
      });
    });

    describe('the whole log', () => {
      it('continues from a position without repeating or skipping events', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        const [head] = await append(stream, null, event('A'), event('B'));
        await append(stream, head ?? null, event('C'));
        const all = await readUntilEnough(
          eventStore,
          from,
          (events) => filterByStream(stream, events).length === 3,
        );
        expect(filterByStream(stream, all).map((e) => e.type)).toEqual(['A', 'B', 'C']);
        expect(
          all.every((e, i) => i === 0 || isAfter(e.position, all[i - 1]?.position ?? BEGINNING)),
        ).toBe(true);
        const second = filterByStream(stream, all)[1]?.position ?? BEGINNING;
        const rest = await readUntilEnough(
          eventStore,
          second,
          (events) => filterByStream(stream, events).length === 1,
        );
        expect(filterByStream(stream, rest).map((e) => e.type)).toEqual(['C']);
      });

      it('has a head before everything that is appended afterwards', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        await append(stream, null, event('A'));
        const [stored] = await read(eventStore, stream);
        expect(stored && isAfter(stored.position, from)).toBe(true);
      });

      it('returns up to a head all events acknowledged before it, and none after', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        const [head] = await append(stream, null, event('A'), event('B'));
        const until = await eventStore.head();
        await append(stream, head ?? null, event('C'));
        const typesFrom = async (after: Position) =>
          filterByStream(stream, await eventStore.readUntil(until, after, 100)).map(
            ({ type }) => type,
          );
        expect(await typesFrom(from)).toEqual(['A', 'B']);
        const [first] = filterByStream(stream, await eventStore.readUntil(until, from, 1));
        expect(first?.type).toBe('A');
        expect(await typesFrom(first?.position ?? from)).toEqual(['B']);
        expect(await typesFrom(until)).toEqual([]);
      });

      it('finds the revision that streams had at a position', async () => {
        const [stream, later] = [newStream(), newStream()];
        const [head] = await append(stream, null, event('A'), event('B'));
        const until = await eventStore.head();
        await append(stream, head ?? null, event('C'));
        await append(later, null, event('A'));
        const streams = [stream, later, newStream()];
        expect(await eventStore.findRevisions(streams, until)).toEqual(new Map([[stream, 1]]));
        expect(await eventStore.findRevisions(streams, await eventStore.head())).toEqual(
          new Map([
            [stream, 2],
            [later, 0],
          ]),
        );
      });

      it('shows every event of many writers once and each stream in order', async () => {
        const from = await eventStore.head();
        const streams = Array.from({ length: 16 }, newStream);
        const write = async (stream: string) => {
          let head = null;
          for (let i = 0; i < 25; i++) {
            const [next]: Awaited<ReturnType<typeof append>> = await append(
              stream,
              head,
              event(`E${i}`),
            );
            head = next ?? null;
          }
        };
        const pendingWrites = Promise.all(streams.map(write));
        const seen = await readUntilEnough(
          eventStore,
          from,
          (events) => events.filter((e) => streams.includes(e.stream)).length >= 16 * 25,
        );
        await pendingWrites;
        for (const stream of streams) {
          expect(filterByStream(stream, seen).map((e) => e.revision)).toEqual(range(0, 24));
        }
      });
    });

    describe('subscribe', () => {
      it('delivers existing and new events from its position in order', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        const [head] = await append(stream, null, event('A'));
        const stop = new AbortController();
        const seen: StoredEvent[] = [];
        const done = new Promise<void>((resolve) => {
          void eventStore.subscribe({
            after: from,
            batch: 10,
            signal: stop.signal,
            onEvents: async (events) => {
              seen.push(...filterByStream(stream, events));
              if (seen.length === 3) resolve();
            },
          });
        });
        await append(stream, head ?? null, event('B'), event('C'));
        await done;
        stop.abort();
        expect(seen.map((e) => e.type)).toEqual(['A', 'B', 'C']);
      });

      it('skips no event that had arrived when the subscription was stopped', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        const types = Array.from({ length: 200 }, (_, i) => `E${i}`);
        const seen: StoredEvent[] = [];
        const follow = async (
          after: Position,
          onEvents: (stop: () => void, position: Position) => Awaitable<void>,
        ) => {
          const stop = new AbortController();
          await eventStore.subscribe({
            after,
            batch: 40,
            signal: stop.signal,
            onEvents: async (events, position) => {
              seen.push(...filterByStream(stream, events));
              await onEvents(() => stop.abort(), position);
            },
          });
        };
        let batches = 0;
        let resumeAt = from;
        const first = follow(from, async (stop, position) => {
          // The rest of the events arrives while the subscriber is busy.
          if (batches++ === 0)
            await readUntilEnough(
              eventStore,
              from,
              (all) => filterByStream(stream, all).length === 200,
            );
          else stop();
          resumeAt = position;
        });
        await append(stream, null, ...types.map((type) => event(type)));
        await first;
        expect(seen.length).toBeLessThan(200);
        await follow(resumeAt, (stop) => (seen.at(-1)?.type === types.at(-1) ? stop() : undefined));
        expect(seen.map(({ type }) => type)).toEqual(types);
      });

      it('rejects with the error of its subscriber', async () => {
        const from = await eventStore.head();
        const stream = newStream();
        await append(stream, null, event('A'));
        const subscription = eventStore.subscribe({
          after: from,
          batch: 10,
          signal: new AbortController().signal,
          onEvents: async () => {
            throw new Error('the effect failed');
          },
        });
        await expect(subscription).rejects.toThrow('the effect failed');
      });

      it('ends when its signal aborts', async () => {
        const stop = new AbortController();
        const subscription = eventStore.subscribe({
          after: await eventStore.head(),
          batch: 10,
          signal: stop.signal,
          onEvents: async () => undefined,
        });
        stop.abort();
        await expect(subscription).resolves.toBeUndefined();
      });
    });
  });
}

export function newStream(): string {
  return `thing-${randomInt(1, 2 ** 47)}`;
}

/** Creates the position of the n-th event of a log. */
export const at = (n: number): Position => ({ commit: BigInt(n), prepare: BigInt(n) });

/** Creates that event, with n as its revision. */
export const createStored = (n: number): StoredEvent => ({
  ...event('A'),
  stream: 'thing-1',
  revision: n,
  hash: '',
  position: at(n),
});

export function event(type: string, data: NewEvent['data'] = {}): NewEvent {
  const at = new Date().toISOString();
  return {
    id: randomUUID(),
    type,
    version: 1,
    data,
    meta: {
      accountId: 1,
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: 'contract',
      occurredAt: at,
      recordedAt: at,
    },
  };
}

function write(
  stream: string,
  expected: { revision: number; hash: string } | null,
  ...events: NewEvent[]
) {
  return { stream, expected, events };
}

async function read(
  eventStore: EventStore,
  stream: string,
  options?: Parameters<EventStore['readStream']>[1],
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const stored of eventStore.readStream(stream, options)) events.push(stored);
  return events;
}

function getHead({ revision, hash }: StoredEvent): Head {
  return { revision, hash };
}

async function readTypes(eventStore: EventStore, stream: string): Promise<string[]> {
  return (await read(eventStore, stream)).map((stored) => stored.type);
}

/** Reads the log in small pages until there is enough. */
async function readUntilEnough(
  eventStore: EventStore,
  from: Parameters<EventStore['readAll']>[0],
  isEnough: (events: StoredEvent[]) => boolean,
): Promise<StoredEvent[]> {
  const seen: StoredEvent[] = [];
  for (let after = from; !isEnough(seen);) {
    const page = await eventStore.readAll(after, 7);
    seen.push(...page);
    after = page.at(-1)?.position ?? after;
  }
  return seen;
}

function filterByStream(stream: string, events: StoredEvent[]): StoredEvent[] {
  return events.filter((stored) => stored.stream === stream);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
