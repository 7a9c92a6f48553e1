import { parentPort, workerData } from 'node:worker_threads';
import { EventTypes } from '#event-store/port/event-types.js';
import { readLog } from '#event-store/log/read-log.js';
import type { StagingBuilder } from '#event-store/verification/staging-builder.js';
import { HistoryStagingBuilder } from '#history/history-staging.service.js';
import { LeafOrder } from '#transparency/leaf-order.js';
import { Tree } from '#transparency/tree.service.js';
import { readModels } from '../apps/read-models.js';
import { connectForFilling } from './rebuild-client.js';
import { withFilling, type Filling } from './rebuild-filling.js';
import { runScript } from './run-script.js';
import { withVerification, type VerificationServices } from './verification-services.js';

/**
 * The data that the thread starts with.
 * @property history whether to fill the table of the history as well as those of the read models
 */
export type LogFilling = Filling & { history: boolean };

/**
 * How many events of the history and of read models were replayed since the last message; or at the end why the rebuilt
 * history must not take the place of the live one, if so.
 */
export type LogFilled = { events: number } | { error: string | undefined };

const PAGE = 5_000;

/** Fills staging tables in the order of the log, and so in one thread. */
const port = parentPort;
if (port) {
  const filling = workerData as LogFilling;
  const report = (message: LogFilled) => port.postMessage(message);
  runScript(() =>
    filling.tables.length > 0
      ? withFilling(filling, (services, rows) => fill(services, rows, filling.history, report))
      : withVerification((services) => fill(services, null, filling.history, report)),
  );
}

async function fill(
  { config, pool, store }: VerificationServices,
  rows: StagingBuilder | null,
  hasHistory: boolean,
  report: (message: LogFilled) => void,
): Promise<void> {
  const client = await connectForFilling(config);
  try {
    const { edge } = await new Tree(pool).read();
    const order = new LeafOrder(edge);
    const types = new EventTypes(readModels.map(({ aggregate }) => aggregate));
    const history = hasHistory ? new HistoryStagingBuilder(client, store, types) : null;
    for await (const events of readLog(store, PAGE)) {
      if (history) order.add(events);
      const [count = 0] = await Promise.all([rows?.add(events), history?.add(events)]);
      report({ events: history ? events.length + count : count });
    }
    await Promise.all([rows?.flush(), history?.flush()]);
    report({ error: history ? order.findError() : undefined });
  } finally {
    await client.end();
  }
}
