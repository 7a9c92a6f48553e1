import { parentPort } from 'node:worker_threads';
import { EventTypes } from '#event-store/port/event-types.js';
import { listNewStreams } from '#event-store/verification/stream-ranges.js';
import { HistoryStagingBuilder } from '#history/history-staging.service.js';
import { LeafOrder } from '#transparency/leaf-order.js';
import { Tree } from '#transparency/tree.service.js';
import { readModels } from '../apps/read-models.js';
import { connectForFilling } from './rebuild-client.js';
import { runScript } from './run-script.js';
import { withVerification } from './verification-services.js';

/**
 * How many events were read since the last message, and the streams that begin with one of them; or at the end whether
 * their order is the one that was signed.
 */
export type HistoryFilled =
  | { events: number; newStreams: string[] }
  | { error: string | undefined };

/** Fills the staging table of the history. */
const port = parentPort;
if (port) {
  runScript(() =>
    withVerification(async ({ config, pool, store }) => {
      const client = await connectForFilling(config);
      try {
        const { edge } = await new Tree(pool).read();
        const order = new LeafOrder(edge);
        const types = new EventTypes(readModels.map(({ aggregate }) => aggregate));
        const builder = new HistoryStagingBuilder(client, store, types);
        await builder.fill((events) => {
          order.add(events);
          port.postMessage({
            events: events.length,
            newStreams: listNewStreams(events),
          } satisfies HistoryFilled);
        });
        port.postMessage({ error: order.findError() } satisfies HistoryFilled);
      } finally {
        await client.end();
      }
    }),
  );
}
