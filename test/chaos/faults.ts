import { setTimeout as wait } from 'node:timers/promises';
import type { DatabaseProxy } from '../support/database/database-proxy.js';
import type { Random } from './random.js';
import type { Process, Stack } from './stack.js';

/** Something that goes wrong. `inflict` resolves when it is over, or has begun for good. */
export type Fault = { name: string; inflict: (stack: Stack, random: Random) => Promise<void> };

const pickProcess = (random: Random, processes: Process[]): Process => {
  const process = random.pick(processes);
  if (!process) throw new Error('the stack has no such process');
  return process;
};

/** Picks the connection of a process to its database or its event store. */
const pickConnection = (random: Random, stack: Stack): DatabaseProxy => {
  const proxy = random.pick(Object.values(pickProcess(random, stack.processes).connections));
  if (!proxy) throw new Error('a process has a connection to its database');
  return proxy;
};

const kill = (which: 'apis' | 'dispatchers') => async (stack: Stack, random: Random) => {
  await pickProcess(random, stack[which]).kill();
  await stack.expireLeases();
};

const FAULTS: Fault[] = [
  { name: 'kill an api', inflict: kill('apis') },
  { name: 'kill a dispatcher', inflict: kill('dispatchers') },
  {
    name: 'kill PostgreSQL',
    inflict: async (stack) => {
      await stack.killPostgres();
      await stack.expireLeases();
    },
  },
  {
    name: 'kill all apis and dispatchers',
    inflict: async (stack) => {
      await Promise.all(stack.processes.map((process) => process.kill()));
      await stack.expireLeases();
    },
  },
  {
    name: 'pause a process',
    inflict: async (stack, random) => {
      const process = pickProcess(random, stack.processes);
      process.signal('SIGSTOP');
      await wait(random.between(500, 4_000));
      process.signal('SIGCONT');
    },
  },
  {
    name: 'silence open connections for good',
    inflict: async (stack, random) => {
      pickConnection(random, stack).muteOpen();
    },
  },
  {
    name: 'lose the responses of a database',
    inflict: async (stack, random) => {
      pickConnection(random, stack).muteResponses();
    },
  },
  {
    name: 'silence a database',
    inflict: async (stack, random) => {
      const proxy = pickConnection(random, stack);
      proxy.mute();
      await wait(random.between(1_000, 6_000));
      proxy.unmute();
    },
  },
  {
    name: 'cut a database off',
    inflict: async (stack, random) => {
      const proxy = pickConnection(random, stack);
      await proxy.cut();
      await wait(random.between(500, 3_000));
      await proxy.mend();
    },
  },
  {
    name: 'cut clients off',
    inflict: async (stack, random) => {
      const proxy = random.pick(stack.apiProxies);
      await proxy?.cut();
      await wait(random.between(100, 1_000));
      await proxy?.mend();
    },
  },
  {
    name: 'lose responses to clients',
    inflict: async (stack, random) => {
      const proxy = random.pick(stack.apiProxies);
      proxy?.muteResponses();
      await wait(300);
      await proxy?.cut();
      await proxy?.mend();
    },
  },
];

const EVENT_STORE_FAULTS: Fault[] = [
  {
    name: 'kill EventStoreDB',
    inflict: async (stack) => {
      await stack.killEventStoreDb();
      await stack.expireLeases();
    },
  },
];

/** Yields faults without end: each once, in random order, then each again. */
export function* generateFaults(stack: Stack, random: Random): Generator<Fault, never> {
  const all = [...FAULTS, ...(stack.engine === 'eventstoredb' ? EVENT_STORE_FAULTS : [])];
  for (;;) yield* random.shuffle(all);
}
