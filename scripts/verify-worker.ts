import { on } from 'node:events';
import { parentPort, type MessagePort } from 'node:worker_threads';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { LogVerification, type VerifiedPage } from '#event-store/verification/log-verification.js';
import type { Slice, VerificationResult } from '#event-store/verification/verification.js';
import { readModels } from '../apps/read-models.js';
import { retryLostConnections } from './lost-connections.js';
import { withVerification } from './verification-services.js';

/** @property resultPort gets a `VerificationResult` */
export type SliceTask = { slice: Slice; repair: boolean; resultPort: MessagePort };
/** @property page the next of the log. @property resultPort gets a `VerifiedPage` */
export type PageTask = { page: StoredEvent[]; resultPort: MessagePort };
export type Task = SliceTask | PageTask;

/** Tasks as the script gives them, until it sends null. An error ends the thread and is reported to the script. */
const port = parentPort;
if (port) {
  await withVerification(async ({ keys, verification }) => {
    const log = new LogVerification(verification, keys, readModels);
    const verify = async (task: Task) =>
      task.resultPort.postMessage(
        await retryLostConnections<VerificationResult | VerifiedPage>(() =>
          'page' in task ? log.add(task.page) : verification.verifySlice(task.slice, task.repair),
        ),
      );
    const running: Promise<void>[] = [];
    for await (const [task] of on(port, 'message') as AsyncIterable<[Task | null]>) {
      if (task === null) break;
      running.push(verify(task));
    }
    await Promise.all(running);
  });
}
