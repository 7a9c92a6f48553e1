import { parentPort, workerData } from 'node:worker_threads';
import type { StreamRange } from '#event-store/verification/stream-replay.js';
import { withFilling, type Filling } from './rebuild-filling.js';

/** One part of the streams after the other, as the script asks for them. */
const port = parentPort;
if (port) {
  await withFilling(workerData as Filling, async (_services, rows) => {
    for (let part = await next(port); part !== null; part = await next(port)) {
      port.postMessage(await rows.buildStreams(part));
    }
  });
}

function next(from: NonNullable<typeof port>): Promise<StreamRange[] | null> {
  return new Promise((resolve) => from.once('message', resolve));
}
