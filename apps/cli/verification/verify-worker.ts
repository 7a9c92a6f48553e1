import { on } from 'node:events';
import { parentPort, type MessagePort } from 'node:worker_threads';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import {
  LogVerification,
  type VerifiedPage,
} from '#platform/event-store/verification/log-verification.js';
import type {
  Scope,
  Slice,
  VerificationResult,
} from '#platform/event-store/verification/verification.js';
import { readModels } from '../../read-models.js';
import { retryLostConnections } from '../lost-connections.js';
import { withVerification } from './verification-services.js';

/** @property resultPort gets a `VerificationResult` */
export type SliceTask = { slice: Slice; scope: Scope; resultPort: MessagePort };
/** @property page the next of the log. @property resultPort gets a `VerifiedPage` */
export type PageTask = {
  page: StoredEvent[];
  tables: string[];
  scope: Scope;
  resultPort: MessagePort;
};
export type Task = SliceTask | PageTask;

/** Tasks as the command gives them, until it sends null. An error ends the thread and is reported to the command. */
const port = parentPort;
if (port) {
  await withVerification(async ({ keys, verification }) => {
    let log: LogVerification | undefined;
    const verifyPage = ({ page, tables, scope }: PageTask) => {
      const verified = readModels.filter(({ table }) => tables.includes(table));
      log ??= new LogVerification(verification, keys, verified, scope);
      return log.add(page);
    };
    const verify = async (task: Task) => {
      const result: VerificationResult | VerifiedPage =
        'page' in task
          ? await retryLostConnections(() => verifyPage(task))
          : await verification.verifySlice(task.slice, task.scope, retryLostConnections);
      task.resultPort.postMessage(result);
    };
    const running: Promise<void>[] = [];
    for await (const [task] of on(port, 'message') as AsyncIterable<[Task | null]>) {
      if (task === null) break;
      running.push(verify(task));
    }
    await Promise.all(running);
  });
}
