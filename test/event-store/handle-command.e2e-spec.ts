import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { Aggregate, CommandContext, KeyedRequest } from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import {
  startStream,
  type Decision,
  type HandledCommand,
} from '#platform/event-store/commands/command-plan.js';
import {
  ClaimTakenError,
  KeyTakenOverError,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PipelineMetrics } from '#platform/event-store/commands/pipeline-metrics.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { testConfig, createTestDatabase, type TestDatabase } from '../support/database/database.js';
import { openStore, streamKinds } from '../support/database/event-store.js';

/** The smallest aggregate that can reject a command: a counter that never goes below zero. */
type Counter = { accountId: number; value: number; steps: number[] };
type CountEvent = { type: 'Counted'; data: { step: number } };

const counter: Aggregate<Counter, CountEvent> = {
  name: 'counter',
  table: 'accounts',
  events: { Counted: { name: 'counter.counted', publishedAs: null } },
  projectionVersion: 1,
  evolve: (state, { data, meta }) => ({
    accountId: meta.accountId,
    value: (state?.value ?? 0) + data.step,
    steps: [...(state?.steps ?? []), data.step],
  }),
};

const context: CommandContext = {
  accountId: 1,
  actor: { type: 'token', id: 9 },
  channel: 'api',
  requestId: 'request-1',
};

let database: TestDatabase;
/** Two pipelines that share nothing, as in two api processes. */
let here: Awaited<ReturnType<typeof openProcess>>;
let there: Awaited<ReturnType<typeof openProcess>>;
let ids = 0;

async function openProcess() {
  const config = testConfig(database.url);
  const { close, ...process } = await openStore(config, streamKinds('counter', 'notes'));
  const { store, rows, keys, responses } = process;
  const metrics = new PipelineMetrics(new Registry());
  const pipeline = new CommandPipeline(store, rows, keys, responses, metrics);
  return { ...process, close, pipeline };
}

beforeAll(async () => {
  database = await createTestDatabase();
  here = await openProcess();
  there = await openProcess();
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.close();
});

function count(
  id: number,
  step: number,
  more: Partial<Decision<CountEvent>> = {},
  pipeline: CommandPipeline = here.pipeline,
  as: CommandContext = context,
  load = async (): Promise<undefined> => undefined,
) {
  return pipeline.handleCommand<
    Counter,
    CountEvent,
    undefined,
    HandledCommand<Counter, CountEvent, undefined>
  >({
    respond: (handled) => handled,
    readModel: counter,
    id,
    context: as,
    load,
    decide: (state) => {
      if ((state?.value ?? 0) + step < 0)
        throw new RejectedError({
          base: [{ code: 'below_zero', params: {}, message: 'below zero' }],
        });
      return { events: step === 0 ? [] : [{ type: 'Counted', data: { step } }], ...more };
    },
  });
}

/** Holds commands between their load and their decision until it is opened. */
function createBarrier() {
  let open: () => void = () => undefined;
  let arrive: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const reached = new Promise<void>((resolve) => (arrive = resolve));
  const hold = async (): Promise<undefined> => {
    arrive();
    await opened;
  };
  return { hold, reached, open };
}

const readEvents = async (id: number) => {
  const events: StoredEvent[] = [];
  for await (const event of here.store.readStream(`counter-${id}`)) events.push(event);
  return events;
};

describe('handleCommand', () => {
  it('responds with the new state and writes event and read model together', async () => {
    const id = ++ids;
    await count(id, 5);
    const { state, events } = await count(id, 2);
    expect(state).toEqual({ accountId: 1, value: 7, steps: [5, 2] });
    expect(events).toMatchObject([{ type: 'Counted', data: { step: 2 } }]);
    const row = await here.rows.load(counter, id);
    const projection = await here.rows.project(counter, `counter-${id}`);
    expect(row?.state).toEqual(state);
    expect([projection?.state, projection?.head]).toEqual([row?.state, row?.head]);
  });

  it('records actor, channel and time in every event', async () => {
    const id = ++ids;
    const before = Date.now();
    await here.pipeline.handleCommand<
      Counter,
      CountEvent,
      undefined,
      HandledCommand<Counter, CountEvent, undefined>
    >({
      respond: (handled) => handled,
      readModel: counter,
      id,
      context,
      decide: () => ({
        events: [{ type: 'Counted', data: { step: 1 } }],
        occurredAt: new Date('2020-01-01T00:00:00Z'),
      }),
    });
    const [event] = await readEvents(id);
    expect(event?.meta).toEqual({
      ...context,
      commandId: expect.any(String),
      occurredAt: '2020-01-01T00:00:00.000Z',
      recordedAt: expect.any(String),
    });
    expect(Date.parse(String(event?.meta.recordedAt))).toBeGreaterThanOrEqual(before);
  });

  it('writes no event when the state does not change', async () => {
    const id = ++ids;
    await count(id, 1);
    expect((await count(id, 0)).state.value).toBe(1);
    expect(await readEvents(id)).toHaveLength(1);
    await expect(count(++ids, 0)).rejects.toThrow(NotFoundError);
  });

  it('commits 7,200 events of concurrent commands, though the event store limits a commit', async () => {
    const id = ++ids;
    const large = () =>
      here.pipeline.handleCommand<Counter, CountEvent, undefined, number>({
        respond: ({ state }) => state.value,
        readModel: counter,
        id,
        context,
        decide: () => Array.from({ length: 600 }, () => ({ type: 'Counted', data: { step: 1 } })),
      });
    const values = await Promise.all(Array.from({ length: 12 }, large));
    expect(values).toEqual(Array.from({ length: 12 }, (_, i) => 600 * (i + 1)));
    expect(await readEvents(id)).toHaveLength(7_200);
  });

  it('rejects a record of another account as not found', async () => {
    const id = ++ids;
    await count(id, 1);
    const stranger = { ...context, accountId: 2 };
    await expect(count(id, 1, {}, here.pipeline, stranger)).rejects.toThrow(NotFoundError);
  });

  it('decides commands for one stream in order, and a rejected one fails only its caller', async () => {
    const id = ++ids;
    await count(id, 3);
    const steps = [-2, -2, 5, -6, 1, 0];
    const results = await Promise.allSettled(steps.map((step) => count(id, step)));
    expect(results.map((result) => result.status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
    expect((await here.rows.load(counter, id))?.state.steps).toEqual([3, -2, 5, -6, 1]);
  });

  it('loses no command when two processes write to one stream', async () => {
    const id = ++ids;
    await count(id, 1);
    const pipelines = [here.pipeline, there.pipeline];
    const results = await Promise.allSettled(
      Array.from({ length: 400 }, (_, i) => count(id, 1, {}, pipelines[i % 2])),
    );
    expect(results.filter((result) => result.status === 'rejected')).toEqual([]);
    expect((await here.rows.load(counter, id))?.state.value).toBe(401);
    expect(await readEvents(id)).toHaveLength(401);
  });

  it('counts both commands when two processes start one stream', async () => {
    const id = ++ids;
    await Promise.all([count(id, 1), count(id, 1, {}, there.pipeline)]);
    expect((await here.rows.load(counter, id))?.state.value).toBe(2);
  });

  it('fails only the command whose claim belongs to another stream', async () => {
    const [id, otherId] = [++ids, ++ids];
    const claim = (stream: number) => [
      here.keys.createClaim(1, 'name', 'same', `counter-${stream}`),
    ];
    await count(otherId, 1, { claims: claim(otherId) });
    // While the first is being committed, the next four wait: they are decided in order as one group.
    const first = count(id, 1);
    const results = await Promise.allSettled([
      count(id, 10),
      count(id, 100),
      count(id, 1000, { claims: claim(id) }),
      count(id, 10000),
    ]);
    await first;
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(results[2]).toMatchObject({ reason: expect.any(ClaimTakenError) });
    expect((await here.rows.load(counter, id))?.state.steps).toEqual([1, 10, 100, 10000]);
  });

  it('decides a command again on the committed state before it rejects it', async () => {
    const id = ++ids;
    await count(id, 3);
    const { hold, reached, open } = createBarrier();
    // The first is committed alone; of the next two the second is rejected if the first succeeds.
    const commands = [count(id, 0), count(id, -2), count(id, -2, {}, here.pipeline, context, hold)];
    await reached;
    await count(id, 5, {}, there.pipeline);
    open();
    await Promise.all(commands);
    expect((await here.rows.load(counter, id))?.state.steps).toEqual([3, 5, -2, -2]);
  });

  it('starts further streams in the same commit, or none', async () => {
    const [id, second] = [++ids, ++ids];
    const newStream = startStream(counter, second, [{ type: 'Counted', data: { step: 7 } }]);
    await count(id, 1, { newStreams: [newStream] });
    expect((await here.rows.load(counter, second))?.state.value).toBe(7);
    const [third, fourth] = [++ids, ++ids];
    await count(fourth, 1, {
      claims: [here.keys.createClaim(1, 'name', 'other', `counter-${fourth}`)],
    });
    const claims = [here.keys.createClaim(1, 'name', 'other', `counter-${third}`)];
    const rejection = count(third, 1, {
      claims,
      newStreams: [startStream(counter, ++ids, [{ type: 'Counted', data: { step: 7 } }])],
    });
    await expect(rejection).rejects.toThrow(ClaimTakenError);
    expect(await here.rows.load(counter, third)).toBeUndefined();
    expect(await here.rows.load(counter, ids)).toBeUndefined();
  });

  it('reprojects a read model of an older projection version', async () => {
    const id = ++ids;
    await count(id, 4);
    const doublingReadModel: ReadModel<Counter, CountEvent> = {
      ...counter,
      projectionVersion: 2,
      evolve: (state, event) => {
        const next = counter.evolve(state, event);
        return { ...next, value: (state?.value ?? 0) + 2 * event.data.step };
      },
    };
    expect((await here.rows.load(doublingReadModel, id))?.state.value).toBe(8);
    const { state } = await here.pipeline.handleCommand<
      Counter,
      CountEvent,
      undefined,
      HandledCommand<Counter, CountEvent, undefined>
    >({
      respond: (handled) => handled,
      readModel: doublingReadModel,
      id,
      context,
      decide: () => [{ type: 'Counted', data: { step: 1 } }],
    });
    expect(state.value).toBe(10);
    expect((await here.rows.load(doublingReadModel, id))?.state.value).toBe(10);
  });

  it('keeps the newest revision of a read model when an older write arrives late', async () => {
    const id = ++ids;
    await count(id, 1);
    await count(id, 1);
    const old = { t: 'accounts', s: 'x', id, a: 1, r: 0, h: 'cd'.repeat(32), v: 1 };
    await database.query(`select es.write_read_models('{accounts}', $1, '{x}')`, [
      JSON.stringify([{ ...old, st: { accountId: 1, value: -1, steps: [] } }]),
    ]);
    expect((await here.rows.load(counter, id))?.state.value).toBe(2);
  });
});

describe('commands with an Idempotency-Key', () => {
  const REQUEST = Buffer.from('the same body');

  /** Claims the key, as a request does when it begins. */
  async function claimKey(process: typeof here, key: string): Promise<KeyedRequest> {
    const fingerprint = process.responses.fingerprint(key);
    const keyed = { key: fingerprint, holder: createId(), status: 200, isStored: false };
    expect(await process.responses.claimKey(keyed, REQUEST)).toEqual({ state: 'ours' });
    return keyed;
  }

  /** Ends the lease of the key, so that the next request with it takes over. */
  const endLease = ({ key }: KeyedRequest) =>
    database.query('update es.stored_responses set leased_until = now() where key = $1', [key]);

  const countKeyed = (process: typeof here, id: number, step: number, keyed: KeyedRequest) =>
    count(id, step, {}, process.pipeline, { ...context, keyed });

  /** Claims the key again, which returns its stored response. */
  const claimAgain = (keyed: KeyedRequest) =>
    there.responses.claimKey({ ...keyed, holder: createId() }, REQUEST);

  const toJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  it('each store the response of their own commit when two processes write to one stream', async () => {
    const id = ++ids;
    await count(id, 1);
    const commands = await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        const process = i % 2 === 0 ? here : there;
        return { process, keyed: await claimKey(process, `fight ${id} ${i}`) };
      }),
    );
    const responses = await Promise.all(
      commands.map(({ process, keyed }) => countKeyed(process, id, 1, keyed)),
    );
    expect(responses.map(({ state }) => state.value).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, i) => i + 2),
    );
    expect(await readEvents(id)).toHaveLength(41);
    for (const [i, { keyed }] of commands.entries()) {
      expect(keyed.isStored).toBe(true);
      expect(await claimAgain(keyed)).toEqual({
        state: 'done',
        status: 200,
        body: toJson(responses[i]),
      });
    }
  });

  it('store no response for a commit that lost its race', async () => {
    const [id, otherId] = [++ids, ++ids];
    await count(id, 3);
    await count(otherId, 3);
    const [loser, winner] = [await claimKey(here, `lost ${id}`), await claimKey(here, `won ${id}`)];
    const { hold, reached, open } = createBarrier();
    // Both have loaded their state before the race is lost; then they are written in one transaction.
    const keyed = (stream: number, key: KeyedRequest) =>
      count(stream, -2, {}, here.pipeline, { ...context, keyed: key }, hold);
    const results = Promise.allSettled([keyed(id, loser), keyed(otherId, winner)]);
    await reached;
    await count(id, -2, {}, there.pipeline);
    open();
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect((await here.rows.load(counter, id))?.state.steps).toEqual([3, -2]);
    expect((await here.rows.load(counter, otherId))?.state.steps).toEqual([3, -2]);
    expect([loser.isStored, winner.isStored]).toEqual([false, true]);
    expect(await claimAgain(loser)).toEqual({ state: 'running' });
    expect(await claimAgain(winner)).toMatchObject({ state: 'done' });
  });

  it('fail without failing others when another process has taken over their key', async () => {
    const id = ++ids;
    await count(id, 1);
    const mine = [
      await claimKey(here, `one ${id}`),
      await claimKey(here, `two ${id}`),
      await claimKey(here, `three ${id}`),
    ] as const;
    // The client of the second has repeated its request at the other process.
    await endLease(mine[1]);
    const theirs = await claimKey(there, `two ${id}`);
    const first = count(id, 10);
    const [one, two, three] = await Promise.allSettled(
      mine.map((keyed, i) => countKeyed(here, id, 100 + i, keyed)),
    );
    await first;
    expect([one?.status, two?.status, three?.status]).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(two).toMatchObject({ reason: expect.any(KeyTakenOverError) });
    expect(mine.map(({ isStored }) => isStored)).toEqual([true, false, true]);
    const response = await countKeyed(there, id, 101, theirs);
    expect(response.state.steps).toEqual([1, 10, 100, 102, 101]);
    expect(await claimAgain(theirs)).toMatchObject({ state: 'done', body: toJson(response) });
  });

  it('have their keys once when several processes claim many of them at the same time', async () => {
    const keys = Array.from({ length: 100 }, (_, i) => here.responses.fingerprint(`many ${i}`));
    const claim = (process: typeof here, key: Buffer) => {
      const keyed = { key, holder: createId(), status: 200, isStored: false };
      return process.responses.claimKey(keyed, REQUEST);
    };
    const claims = await Promise.all([
      ...keys.flatMap((key) => [claim(here, key), claim(here, key)]),
      ...keys.toReversed().map((key) => claim(there, key)),
    ]);
    const states = claims.map(({ state }) => state).sort();
    expect(states).toEqual([
      ...keys.map(() => 'ours'),
      ...keys.flatMap(() => ['running', 'running']),
    ]);
  });

  it('are executed once when two requests with one key wait for the same commit', async () => {
    const id = ++ids;
    await count(id, 1);
    const silent = await claimKey(here, `same ${id}`);
    await endLease(silent);
    const again = await claimKey(here, `same ${id}`);
    const unrelated = await claimKey(here, `beside ${id}`);
    const first = count(id, 10);
    const [before, after, otherOutcome] = await Promise.allSettled(
      [silent, again, unrelated].map((keyed, i) => countKeyed(here, id, 100 + i, keyed)),
    );
    await first;
    expect(before).toMatchObject({ reason: expect.any(KeyTakenOverError) });
    expect([after?.status, otherOutcome?.status]).toEqual(['fulfilled', 'fulfilled']);
    expect([silent.isStored, again.isStored, unrelated.isStored]).toEqual([false, true, true]);
    expect((await here.rows.load(counter, id))?.state.steps).toEqual([1, 10, 101, 102]);
    expect(await claimAgain(again)).toMatchObject({ state: 'done' });
  });

  it('are executed once when two requests with one key write to different streams', async () => {
    const [one, other] = [++ids, ++ids];
    await count(one, 1);
    await count(other, 1);
    const silent = await claimKey(here, `streams ${one}`);
    await endLease(silent);
    const again = await claimKey(here, `streams ${one}`);
    const { hold, reached, open } = createBarrier();
    const results = Promise.allSettled([
      count(one, 10, {}, here.pipeline, { ...context, keyed: silent }, hold),
      count(other, 10, {}, here.pipeline, { ...context, keyed: again }, hold),
    ]);
    await reached;
    open();
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect((await here.rows.load(counter, one))?.state.steps).toEqual([1]);
    expect((await here.rows.load(counter, other))?.state.steps).toEqual([1, 10]);
  });
});

describe('encrypted parts of events', () => {
  type Noted = { type: 'Noted'; data: { customerId: number; personal: { note: string } | null } };
  type Notes = { accountId: number; notes: (string | null)[] };
  const notes: ReadModel<Notes, Noted> = {
    name: 'notes',
    table: 'accounts',
    events: { Noted: { name: 'notes.noted', publishedAs: null } },
    projectionVersion: 1,
    evolve: (state, { data, meta }) => ({
      accountId: meta.accountId,
      notes: [...(state?.notes ?? []), data.personal?.note ?? null],
    }),
  };

  it('are rejected for a customer without a key, without failing other callers', async () => {
    const id = ++ids;
    const note = (customerId: number, text: string) =>
      here.pipeline.handleCommand<Notes, Noted, undefined, HandledCommand<Notes, Noted, undefined>>(
        {
          respond: (handled) => handled,
          readModel: notes,
          id,
          context,
          decide: () => [{ type: 'Noted', data: { customerId, personal: { note: text } } }],
        },
      );
    await here.keys.create(78, 'customers');
    const results = await Promise.allSettled([note(78, 'a'), note(79, 'b'), note(78, 'c')]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((await here.rows.load(notes, id))?.state.notes).toEqual(['a', 'c']);
  });

  it('are rejected once the key was deleted, even in a process that has cached it', async () => {
    const [id, customerId] = [++ids, 80];
    const ownReadModel: ReadModel<Notes, Noted> = {
      ...notes,
      table: 'cards',
      subjectIdSql: '80::bigint',
    };
    const note = (text: string) =>
      here.pipeline.handleCommand<Notes, Noted, undefined, HandledCommand<Notes, Noted, undefined>>(
        {
          respond: (handled) => handled,
          readModel: ownReadModel,
          id,
          context,
          decide: () => [{ type: 'Noted', data: { customerId, personal: { note: text } } }],
        },
      );
    await here.keys.create(customerId, 'customers');
    await note('a');
    await note('b');
    await database.query('delete from personal_keys where subject_id = $1', [customerId]);
    await expect(note('c')).rejects.toThrow('This customer was erased');
    expect((await here.rows.load(ownReadModel, id))?.state.notes).toEqual(['a', 'b']);
  });

  it('are decrypted when read, and null once the key was deleted', async () => {
    const [id, customerId] = [++ids, 77];
    await here.keys.create(customerId, 'customers');
    await here.pipeline.handleCommand<
      Notes,
      Noted,
      undefined,
      HandledCommand<Notes, Noted, undefined>
    >({
      respond: (handled) => handled,
      readModel: notes,
      id,
      context,
      decide: () => [{ type: 'Noted', data: { customerId, personal: { note: 'oat milk' } } }],
    });
    const events: StoredEvent[] = [];
    for await (const event of here.store.readStream(`notes-${id}`)) events.push(event);
    expect(events[0]?.data['personal']).toEqual(expect.stringMatching(/^[\w+/=]{40,}$/));
    const projectNotes = async (process: typeof here) =>
      (await process.rows.project<Notes, Noted>(notes, `notes-${id}`))?.state.notes;
    expect(await projectNotes(here)).toEqual(['oat milk']);
    await database.query('delete from personal_keys where subject_id = $1', [customerId]);
    const fresh = await openProcess();
    expect(await projectNotes(fresh)).toEqual([null]);
    await fresh.close();
  });
});
