import { parentPort } from 'node:worker_threads';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { EventStore } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { HistoryStagingBuilder } from '#history/history-staging.service.js';
import { LeafOrder } from '#transparency/leaf-order.js';
import { Tree } from '#transparency/tree.service.js';
import { connectForFilling } from './rebuild-client.js';
import { runScript } from './run-script.js';
import { withServices } from './script-services.js';

/** How many events were read since the last message, or at the end whether their order is the one that was signed. */
export type HistoryFilled = { events: number } | { error: string | undefined };

/** Fills the staging table of the history. */
const port = parentPort;
if (port) {
  runScript(() =>
    withServices(async (app) => {
      const client = await connectForFilling(app.get(Config));
      try {
        const { edge } = await new Tree(app.get(Pool)).read();
        const order = new LeafOrder(edge);
        const builder = new HistoryStagingBuilder(client, app.get(EventStore), app.get(EventTypes));
        await builder.fill((events) => {
          order.add(events);
          port.postMessage({ events: events.length } satisfies HistoryFilled);
        });
        port.postMessage({ error: order.findError() } satisfies HistoryFilled);
      } finally {
        await client.end();
      }
    }),
  );
}
