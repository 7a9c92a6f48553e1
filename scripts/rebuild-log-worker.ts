import { parentPort, workerData } from 'node:worker_threads';
import { EventTypes } from '#event-store/port/event-types.js';
import { readLog } from '#event-store/log/read-log.js';
import { HistoryStagingBuilder } from '#history/history-staging.service.js';
import { LeafOrder } from '#transparency/leaf-order.js';
import { Tree } from '#transparency/tree.service.js';
import { readModels } from '../apps/read-models.js';
import { connectForFilling } from './rebuild-client.js';
import { withFilling, type Filling } from './rebuild-filling.js';
import { runScript } from './run-script.js';

/**
 * The data that the thread starts with.
 * @property history whether to fill the table of the history as well as those of the read models
 */
export type LogFilling = Filling & { history: boolean };

/**
 * How many events were applied since the last message, those of the history and of the read models; or at the end
 * whether their order is the one that was signed.
 */
export type LogFilled = { events: number } | { error: string | undefined };

const PAGE = 5_000;

/** Fills staging tables in the order of the log, and so in one thread. */
const port = parentPort;
if (port) {
  const filling = workerData as LogFilling;
  runScript(() =>
    withFilling(filling, async ({ config, pool, store }, rows) => {
      const client = await connectForFilling(config);
      try {
        const { edge } = await new Tree(pool).read();
        const order = new LeafOrder(edge);
        const types = new EventTypes(readModels.map(({ aggregate }) => aggregate));
        const history = filling.history ? new HistoryStagingBuilder(client, store, types) : null;
        for await (const events of readLog(store, PAGE)) {
          order.add(events);
          const [applied] = await Promise.all([rows.add(events), history?.add(events)]);
          const count = history ? events.length + applied : applied;
          port.postMessage({ events: count } satisfies LogFilled);
        }
        await Promise.all([rows.flush(), history?.flush()]);
        port.postMessage({ error: order.findError() } satisfies LogFilled);
      } finally {
        await client.end();
      }
    }),
  );
}
