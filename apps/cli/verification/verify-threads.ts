import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { PageTask, SliceTask, Task } from './verify-worker.js';

const MAX_THREADS = 8;
/** Nearly everything that a slice allocates is soon garbage; with the usual 16 MB it would be copied over and over. */
const YOUNG_MB = 64;

// As in the dispatcher: the threads keep all processors busy, so extra threads for garbage collection do not help.
setFlagsFromString('--no-parallel-scavenge');
// Objects that outlive a young generation are garbage as well; uncollected they would take several times the memory.
setFlagsFromString('--heap-growing-percent=100');

/** @property early rejects when the thread ends */
type Thread = { worker: Worker; ended: Promise<unknown>; early: Promise<never> };

/**
 * Hashing and projecting are CPU-bound. The main thread does its share; the others start when this is imported, before
 * anything else: loading the program takes each of them as long as it takes the main thread.
 */
export const threads: readonly Thread[] = Array.from(
  { length: Math.min(availableParallelism(), MAX_THREADS) - 1 },
  () => {
    const worker = new Worker(new URL('verify-worker.js', import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    const ended = once(worker, 'exit');
    const early = ended.then(() => {
      throw new Error('a thread ended early');
    });
    // Reported by whoever waits for a result; before that, this process finds the same error itself.
    early.catch(() => undefined);
    return { worker, ended, early };
  },
);

/** Lets a thread do a task. */
export async function runInThread<R>(
  { worker, early }: Thread,
  task: Omit<SliceTask, 'resultPort'> | Omit<PageTask, 'resultPort'>,
): Promise<R> {
  const { port1, port2 } = new MessageChannel();
  const result = once(port1, 'message');
  worker.postMessage({ ...task, resultPort: port2 } satisfies Task, [port2]);
  const [value] = (await Promise.race([result, early])) as [R];
  port1.close();
  return value;
}
