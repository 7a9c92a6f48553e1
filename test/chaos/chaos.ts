import { setTimeout as wait } from 'node:timers/promises';
import { RetryingClient, type Attempts } from './retrying-client.js';
import { generateFaults } from './faults.js';
import { WebhookReceiver } from './webhook-receiver.js';
import { Worker } from './worker.js';
import { OPERATIONS, STORE_OPERATIONS, type Operation } from './operations.js';
import { Random } from './random.js';
import { Stack, type Engine } from './stack.js';
import { report } from './report.js';
import { compareWithModel, type Receivers } from './comparison.js';

const WORKER_COUNT = 16;
const REPORT_EVERY_MS = 10_000;

export type Settings = { engine: Engine; seed: number; operations: number; faults: number };

/**
 * Plays a random but repeatable sequence of operations against a service while faults strike it, and compares it with the
 * model in the end. The operations of a worker depend on the seed alone; what they meet depends on the machine.
 * @throws with the first difference
 */
export async function runChaos({ engine, seed, operations, faults }: Settings): Promise<void> {
  report(`chaos on ${engine}: seed ${seed}, ${operations} operations, ${faults} faults`);
  const random = new Random(seed);
  const stack = await Stack.start(engine);
  const receivers = {
    always: await WebhookReceiver.open('always', random.fork(), 'reliable'),
    paused: await WebhookReceiver.open('paused', random.fork(), 'paused'),
    failing: await WebhookReceiver.open('failing', random.fork(), 'unreliable'),
  };
  try {
    await play({ stack, random, receivers, operations, faults });
  } catch (error) {
    for (const { name, log } of stack.processes) report(`--- ${name}\n${log}`);
    report(String(error));
    throw new Error(
      `${error instanceof Error ? error.message : String(error)}\n\nto repeat these operations: node tools/test/chaos.mjs --engine ${engine} --operations ${operations} --seed ${seed}`,
      { cause: error },
    );
  } finally {
    await Promise.all(Object.values(receivers).map((receiver) => receiver.close()));
    await stack.stop();
  }
}

type Run = {
  stack: Stack;
  random: Random;
  receivers: Receivers;
  operations: number;
  faults: number;
};

async function play({ stack, random, receivers, operations, faults }: Run): Promise<void> {
  const store = `/api/v1/accounts/${stack.accountId}`;
  const abort = new AbortController();
  const attempts: Attempts = { total: 0, withoutResponse: 0, unavailable: 0, running: 0 };
  const createWorker = (name: string) => {
    const client = new RetryingClient(
      () => stack.urls,
      stack.token,
      random.fork(),
      abort.signal,
      attempts,
    );
    return new Worker(name, store, client, random.fork(), stack.engine === 'eventstoredb');
  };
  const workers = Array.from({ length: WORKER_COUNT }, (_, i) => createWorker(`W${i + 1}`));
  const owner = createWorker('owner');
  for (const receiver of Object.values(receivers)) await subscribe(owner, receiver);

  let doneCount = 0;
  const isOver = () => abort.signal.aborted || doneCount >= operations;
  const playCounts = new Map<string, number>();
  const longestMs = new Map<string, number>();
  const runWorker = async (worker: Worker, from: Operation[]) => {
    while (!isOver()) {
      const operation = worker.random.pickWeighted(from);
      const startedAt = Date.now();
      if (!(await operation.run(worker))) continue;
      const { name } = operation;
      playCounts.set(name, (playCounts.get(name) ?? 0) + 1);
      longestMs.set(name, Math.max(longestMs.get(name) ?? 0, Date.now() - startedAt));
      doneCount++;
    }
  };
  const upcomingFaults = generateFaults(stack, random.fork());
  const faultNames: string[] = [];
  const inflictFaults = async () => {
    const faultRandom = random.fork();
    while (!isOver()) {
      const due = Math.floor((doneCount / operations) * (faults + 1));
      if (faultNames.length >= Math.min(due, faults)) await wait(20);
      else {
        const { value: fault } = upcomingFaults.next();
        faultNames.push(fault.name);
        await fault.inflict(stack, faultRandom);
      }
    }
  };
  const startedAt = Date.now();
  const reportTimer = setInterval(() => {
    const rate = Math.round((1000 * doneCount) / (Date.now() - startedAt));
    report(
      `${doneCount} of ${operations} operations, ${rate}/s; ${faultNames.length} faults, last: ${faultNames.at(-1)}`,
    );
  }, REPORT_EVERY_MS);
  const tasks = [
    ...workers.map((worker) => runWorker(worker, OPERATIONS)),
    runWorker(owner, STORE_OPERATIONS),
    pauseRepeatedly(createWorker('pauses'), receivers.paused, isOver),
    inflictFaults(),
  ];
  // The first failure ends the others. The stack is stopped once all have ended.
  for (const task of tasks) task.catch((error: unknown) => abort.abort(error));
  await Promise.allSettled(tasks);
  clearInterval(reportTimer);
  abort.signal.throwIfAborted();
  report(
    `${doneCount} operations, ${attempts.total} attempts: ${attempts.withoutResponse} without a response, ${attempts.unavailable} with 503, ${attempts.running} with 409 because another was running`,
  );
  report([...playCounts].map(([name, count]) => `${name} ${count}`).join(', '));
  const slow = [...longestMs].sort(([, a], [, b]) => b - a).slice(0, 5);
  report(`slowest: ${slow.map(([name, ms]) => `${name} ${ms} ms`).join(', ')}`);
  report(`played in ${Date.now() - startedAt} ms; faults: ${faultNames.join(', ')}`);
  await stack.expireLeases();
  await compareWithModel({ stack, workers: [...workers, owner], ...receivers });
  const { always, paused, failing } = receivers;
  report(
    `no difference: ${always.events.size} events in ${always.attempts + paused.attempts + failing.attempts} webhooks to three receivers, of which one failed ${failing.failed} times`,
  );
}

async function subscribe(owner: Worker, receiver: WebhookReceiver): Promise<void> {
  const path = `${owner.store}/webhook_subscriptions`;
  const { body } = await owner.write('POST', path, { events: ['*'], target_url: receiver.url });
  receiver.secrets.push(String(body['secret']));
  receiver.path = `${path}/${String(body['id'])}`;
}

/** Pauses and resumes a subscription, rotates its secret, and creates and deletes another one, until the run is over. */
async function pauseRepeatedly(
  worker: Worker,
  paused: WebhookReceiver,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    for (const enabled of [false, true]) {
      await worker.write('PATCH', paused.path, { enabled });
      await worker.expectFields(paused.path, { enabled });
      await wait(worker.random.between(200, 2_000));
    }
    const rotation = await worker.write('POST', `${paused.path}/rotate_secret`, {
      grace_seconds: 600,
    });
    paused.secrets.push(String(rotation.body['secret']));
    const path = `${worker.store}/webhook_subscriptions`;
    const target_url = 'https://nobody.invalid/hooks';
    const { body } = await worker.write('POST', path, { events: ['stamp.earned'], target_url });
    await worker.write('DELETE', `${path}/${String(body['id'])}`);
  }
}
