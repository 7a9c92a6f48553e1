import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseProxy } from '../support/database/database-proxy.js';
import type { Random } from './random.js';
import type { Process, Stack } from './stack.js';

/** Something that goes wrong, and is over when `strike` returns. */
export type Fault = { name: string; strike: (stack: Stack, random: Random) => Promise<void> };

const anyOf = (random: Random, processes: Process[]): Process => {
  const one = random.pick(processes);
  if (!one) throw new Error('the stack has no such process');
  return one;
};

/** Of one process: to the database, or to the event store. */
const anyLine = (random: Random, stack: Stack): DatabaseProxy => {
  const line = random.pick(Object.values(anyOf(random, stack.processes).lines));
  if (!line) throw new Error('a process has a line to its database');
  return line;
};

const kill = (which: 'apis' | 'dispatchers') => async (stack: Stack, random: Random) => {
  await anyOf(random, stack[which]).kill();
  await stack.endLeases();
};

const FAULTS: Fault[] = [
  { name: 'kill an api', strike: kill('apis') },
  { name: 'kill a dispatcher', strike: kill('dispatchers') },
  {
    name: 'kill PostgreSQL',
    strike: async (stack) => {
      await stack.killPostgres();
      await stack.endLeases();
    },
  },
  {
    name: 'kill everything that serves',
    strike: async (stack) => {
      await Promise.all(stack.processes.map((one) => one.kill()));
      await stack.endLeases();
    },
  },
  {
    name: 'stop a process for a while',
    strike: async (stack, random) => {
      const one = anyOf(random, stack.processes);
      one.signal('SIGSTOP');
      await wait(random.between(500, 4_000));
      one.signal('SIGCONT');
    },
  },
  {
    name: 'silence what is open, for good',
    strike: async (stack, random) => {
      anyLine(random, stack).muteOpen();
    },
  },
  {
    name: 'lose the answers of a store',
    strike: async (stack, random) => {
      anyLine(random, stack).muteResponses();
    },
  },
  {
    name: 'silence a line',
    strike: async (stack, random) => {
      const line = anyLine(random, stack);
      line.mute();
      await wait(random.between(1_000, 6_000));
      line.unmute();
    },
  },
  {
    name: 'cut a store off',
    strike: async (stack, random) => {
      const line = anyLine(random, stack);
      await line.cut();
      await wait(random.between(500, 3_000));
      await line.mend();
    },
  },
  {
    name: 'cut callers off',
    strike: async (stack, random) => {
      const front = random.pick(stack.fronts);
      await front?.cut();
      await wait(random.between(100, 1_000));
      await front?.mend();
    },
  },
  {
    name: 'lose answers to callers',
    strike: async (stack, random) => {
      const front = random.pick(stack.fronts);
      front?.muteResponses();
      await wait(300);
      await front?.cut();
      await front?.mend();
    },
  },
];

const EVENT_STORE_FAULTS: Fault[] = [
  {
    name: 'kill EventStoreDB',
    strike: async (stack) => {
      await stack.killEventStoreDb();
      await stack.endLeases();
    },
  },
];

/** Without end: each fault once, in any order, then each again. */
export function* faultsFor(stack: Stack, random: Random): Generator<Fault, never> {
  const all = [...FAULTS, ...(stack.engine === 'eventstoredb' ? EVENT_STORE_FAULTS : [])];
  for (;;) yield* random.shuffled(all);
}
