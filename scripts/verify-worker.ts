import { on } from 'node:events';
import { parentPort, type MessagePort } from 'node:worker_threads';
import type { IdRange } from '#event-store/verification/verification.js';
import { retryLostConnections } from './lost-connections.js';
import { withVerification } from './verification-services.js';

/** @property resultPort gets the result */
export type Task = IdRange & { repair: boolean; resultPort: MessagePort };

/** Slices as the script asks for them, until it sends null. An error ends the thread and is reported to the script. */
const port = parentPort;
if (port) {
  await withVerification(async ({ verification }) => {
    const verify = async ({ resultPort, repair, ...slice }: Task) =>
      resultPort.postMessage(
        await retryLostConnections(() => verification.verifyRange(slice, repair)),
      );
    const running: Promise<void>[] = [];
    for await (const [task] of on(port, 'message') as AsyncIterable<[Task | null]>) {
      if (task === null) break;
      running.push(verify(task));
    }
    await Promise.all(running);
  });
}
