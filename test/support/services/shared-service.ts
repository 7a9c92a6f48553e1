import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  createTestDatabase,
  createTestEnvironment,
  getEngineSettings,
} from '../database/database.js';
import { createStops, createStore, type Service } from './service.js';
import { readHistory } from '../database/event-store.js';

type Outcome =
  | { id: number; status: 'fulfilled'; value: unknown }
  | { id: number; status: 'rejected'; reason: unknown };

let shared: Promise<Omit<Service, 'onStop' | 'stop'>> | undefined;

/**
 * The service that all test files of a worker use which need nothing but the usual settings: a built one, in a
 * process of its own. It has a database of its own, in which each file makes its stores, and ends with the worker.
 */
export async function sharedService(): Promise<Service> {
  shared ??= start();
  const { onStop, stopDependents } = createStops();
  return { ...(await shared), onStop, stop: stopDependents };
}

async function start(): Promise<Omit<Service, 'onStop' | 'stop'>> {
  const database = await createTestDatabase();
  const environment = createTestEnvironment(database.url);
  const child = fork('test/support/services/shared-service-process.mjs', {
    env: { ...process.env, ...environment, LOG_LEVEL: 'info' },
    execArgv: [],
    serialization: 'advanced',
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the shared service has ended; see its output above');
  });
  // Thrown to those who wait for it.
  ended.catch(() => undefined);
  const [{ baseUrl }] = (await Promise.race([once(child, 'message'), ended])) as [
    { baseUrl: string },
  ];
  const execute = executeIn(child, ended);
  // Neither keeps this process running; the child ends with it.
  child.unref();
  child.channel?.unref();
  return {
    database,
    environment: getEngineSettings(database.url),
    baseUrl,
    history: () => readHistory(environment),
    execute,
    newStore: (attributes) => createStore(baseUrl, execute, attributes),
  };
}

function executeIn(child: ChildProcess, ended: Promise<never>): Service['execute'] {
  let last = 0;
  const waiting = new Map<number, (outcome: Outcome) => void>();
  child.on('message', (outcome: Outcome) => waiting.get(outcome.id)?.(outcome));
  return async <R>(command: object) => {
    const id = ++last;
    const outcome = new Promise<Outcome>((resolve) => waiting.set(id, resolve));
    child.send({ id, name: command.constructor.name, fields: { ...command } });
    const result = await Promise.race([outcome, ended]);
    waiting.delete(id);
    if (result.status === 'rejected') throw result.reason;
    return result.value as R;
  };
}
