import { parentPort, workerData } from 'node:worker_threads';
import { ErasureWatch } from '#event-store/personal-keys/erasure-watch.service.js';
import { StagingBuilder } from '#event-store/verification/staging-builder.js';
import type { StreamRange } from '#event-store/verification/stream-replay.js';
import { readModels } from '../apps/read-models.js';
import { connectForFilling } from './rebuild-client.js';
import { withVerification } from './verification-services.js';

/** The data that a thread starts with. @property tables names of the read models to fill */
export type Filling = { tables: string[]; claims: boolean };

/** One part of the streams after the other, as the script asks for them. */
const port = parentPort;
if (port) {
  const { tables, claims } = workerData as Filling;
  await withVerification(async ({ config, pool, store, keys }) => {
    // It writes what it decrypts, so erasures wait until this thread has forgotten the person's key.
    const erasures = new ErasureWatch(pool, keys, config);
    const client = await connectForFilling(config);
    try {
      await erasures.onModuleInit();
      const filler = new StagingBuilder(
        client,
        store,
        keys,
        readModels.filter(({ table }) => tables.includes(table)),
        claims,
      );
      for (let part = await next(port); part !== null; part = await next(port)) {
        port.postMessage(await filler.buildStreams(part));
      }
    } finally {
      await erasures.onModuleDestroy();
      await client.end();
    }
  });
}

function next(from: NonNullable<typeof port>): Promise<StreamRange[] | null> {
  return new Promise((resolve) => from.once('message', resolve));
}
