import { ProcessLink } from '#database/process-link.js';
import { ErasureWatch } from '#event-store/personal-keys/erasure-watch.service.js';
import { StagingBuilder } from '#event-store/verification/staging-builder.js';
import { readModels } from '../apps/read-models.js';
import { connectForFilling } from './rebuild-client.js';
import { withVerification, type VerificationServices } from './verification-services.js';

/** The tables that a thread fills. @property tables names of the read models */
export type Filling = { tables: string[]; claims: boolean };

/** Runs work of a thread that fills the staging tables of read models. */
export function withFilling(
  { tables, claims }: Filling,
  work: (services: VerificationServices, rows: StagingBuilder) => Promise<void>,
): Promise<void> {
  return withVerification(async (services) => {
    const { config, pool, store, keys } = services;
    // It writes what it decrypts, so erasures wait until this thread has forgotten the person's key.
    const link = new ProcessLink(config, 'script');
    const erasures = new ErasureWatch(pool, keys, link);
    const client = await connectForFilling(config);
    try {
      await erasures.onModuleInit();
      const ownReadModels = readModels.filter(({ table }) => tables.includes(table));
      await work(services, new StagingBuilder(client, store, keys, ownReadModels, claims));
    } finally {
      await erasures.onModuleDestroy();
      await link.onApplicationShutdown();
      await client.end();
    }
  });
}
