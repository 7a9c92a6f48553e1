import { setTimeout as wait } from 'node:timers/promises';
import { Caller, type Attempts } from './caller.js';
import { faultsFor } from './faults.js';
import { Inbox } from './inbox.js';
import { Lane } from './lane.js';
import { OPERATIONS, STORE_OPERATIONS, type Operation } from './operations.js';
import { Random } from './random.js';
import { Stack, type Engine } from './stack.js';
import { say } from './say.js';
import { expectNoDifference, type Inboxes } from './take-stock.js';

const LANES = 16;
const TOLD_EVERY_MS = 10_000;

export type Settings = { engine: Engine; seed: number; operations: number; faults: number };

/**
 * Plays a random but repeatable sequence of operations against a service to which things happen, and ends when it and
 * the model agree. Which operations a lane plays depends on the seed alone; what they meet depends on the machine.
 * @throws with the first difference
 */
export async function chaos({ engine, seed, operations, faults }: Settings): Promise<void> {
  say(`chaos on ${engine}: seed ${seed}, ${operations} operations, ${faults} faults`);
  const random = new Random(seed);
  const stack = await Stack.start(engine);
  const inboxes = {
    always: await Inbox.open('always', random.fork(), 'sound'),
    paused: await Inbox.open('paused', random.fork(), 'paused'),
    failing: await Inbox.open('failing', random.fork(), 'unsound'),
  };
  try {
    await play({ stack, random, inboxes, operations, faults });
  } catch (error) {
    for (const { name, log } of stack.processes) say(`--- ${name}\n${log}`);
    say(String(error));
    throw new Error(
      `${error instanceof Error ? error.message : String(error)}\n\nthe same operations again: npm run test:chaos -- --engine ${engine} --operations ${operations} --seed ${seed}`,
      { cause: error },
    );
  } finally {
    await Promise.all(Object.values(inboxes).map((inbox) => inbox.close()));
    await stack.stop();
  }
}

type Play = {
  stack: Stack;
  random: Random;
  inboxes: Inboxes;
  operations: number;
  faults: number;
};

async function play({ stack, random, inboxes, operations, faults }: Play): Promise<void> {
  const store = `/api/v1/accounts/${stack.accountId}`;
  const over = new AbortController();
  const attempts: Attempts = { total: 0, unknown: 0, unavailable: 0, running: 0 };
  const newLane = (name: string) => {
    const caller = new Caller(() => stack.urls, stack.token, random.fork(), over.signal, attempts);
    return new Lane(name, store, caller, random.fork(), stack.engine === 'eventstoredb');
  };
  const lanes = Array.from({ length: LANES }, (_, i) => newLane(`L${i + 1}`));
  const owner = newLane('owner');
  for (const inbox of Object.values(inboxes)) await subscribe(owner, inbox);

  let done = 0;
  const isOver = () => over.signal.aborted || done >= operations;
  const played = new Map<string, number>();
  const longest = new Map<string, number>();
  const runLane = async (lane: Lane, from: Operation[]) => {
    while (!isOver()) {
      const operation = lane.random.weighted(from);
      const began = Date.now();
      if (!(await operation.run(lane))) continue;
      const { name } = operation;
      played.set(name, (played.get(name) ?? 0) + 1);
      longest.set(name, Math.max(longest.get(name) ?? 0, Date.now() - began));
      done++;
    }
  };
  const upcoming = faultsFor(stack, random.fork());
  const struck: string[] = [];
  const strike = async () => {
    const sparks = random.fork();
    while (!isOver()) {
      const due = Math.floor((done / operations) * (faults + 1));
      if (struck.length >= Math.min(due, faults)) await wait(20);
      else {
        const { value: fault } = upcoming.next();
        struck.push(fault.name);
        await fault.strike(stack, sparks);
      }
    }
  };
  const began = Date.now();
  const tell = setInterval(() => {
    const rate = Math.round((1000 * done) / (Date.now() - began));
    say(
      `${done} of ${operations} operations, ${rate}/s; ${struck.length} faults, last: ${struck.at(-1)}`,
    );
  }, TOLD_EVERY_MS);
  const running = [
    ...lanes.map((lane) => runLane(lane, OPERATIONS)),
    runLane(owner, STORE_OPERATIONS),
    pauseNowAndThen(newLane('pauses'), inboxes.paused, isOver),
    strike(),
  ];
  // The first failure ends the others; until they have ended, nothing is taken away from under them.
  for (const one of running) one.catch((error: unknown) => over.abort(error));
  await Promise.allSettled(running);
  clearInterval(tell);
  over.signal.throwIfAborted();
  say(
    `${done} operations, ${attempts.total} attempts: ${attempts.unknown} without an answer, ${attempts.unavailable} refused with 503, ${attempts.running} while running`,
  );
  say([...played].map(([name, count]) => `${name} ${count}`).join(', '));
  const slow = [...longest].sort(([, a], [, b]) => b - a).slice(0, 5);
  say(`the longest: ${slow.map(([name, ms]) => `${name} ${ms} ms`).join(', ')}`);
  say(`played in ${Date.now() - began} ms; faults: ${struck.join(', ')}`);
  await stack.endLeases();
  await expectNoDifference({ stack, lanes: [...lanes, owner], ...inboxes });
  const { always, paused, failing } = inboxes;
  say(
    `no difference: ${always.arrived.size} events in ${always.attempts + paused.attempts + failing.attempts} webhooks to three receivers, of which one failed ${failing.failed} times`,
  );
}

async function subscribe(owner: Lane, inbox: Inbox): Promise<void> {
  const path = `${owner.store}/webhook_subscriptions`;
  const { body } = await owner.write('POST', path, { events: ['*'], target_url: inbox.url });
  inbox.secrets.push(String(body['secret']));
  inbox.path = `${path}/${String(body['id'])}`;
}

/** A subscription that is paused and goes on, and one beside it that comes and goes. */
async function pauseNowAndThen(lane: Lane, paused: Inbox, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (const enabled of [false, true]) {
      await lane.write('PATCH', paused.path, { enabled });
      await lane.expectShown(paused.path, { enabled });
      await wait(lane.random.between(200, 2_000));
    }
    const rotated = await lane.write('POST', `${paused.path}/rotate_secret`, {
      grace_seconds: 600,
    });
    paused.secrets.push(String(rotated.body['secret']));
    const path = `${lane.store}/webhook_subscriptions`;
    const target_url = 'https://nobody.invalid/hooks';
    const { body } = await lane.write('POST', path, { events: ['stamp.earned'], target_url });
    await lane.write('DELETE', `${path}/${String(body['id'])}`);
  }
}
