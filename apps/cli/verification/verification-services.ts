import { isMainThread } from 'node:worker_threads';
import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { readConfig, type Config } from '#configuration/config.js';
import { CommandLog } from '#platform/kernel/log.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { createDataSource, getPool } from '#platform/database/data-source.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { openEventStore } from '#platform/event-store/engine.js';
import type { EventStore } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { OrphanedStreams } from '#platform/event-store/verification/orphaned-streams.js';
import { Verification } from '#platform/event-store/verification/verification.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { plainTables, readModels } from '../../read-models.js';
import { retryLostConnections, retrySlowConnection } from '../lost-connections.js';
import { printInstallation } from '../run-program.js';

export type VerificationServices = {
  config: Config;
  pool: pg.Pool;
  store: EventStore;
  keys: PersonalKeys;
  verification: Verification;
  orphanedStreams: OrphanedStreams;
};

/**
 * Runs work with only what a verification and the threads of commands need, without the modules of the service, which
 * would take longer to load than many slices to verify. The main thread checks that the events belong to the database.
 * @throws ConfigError
 */
export async function withVerification<R>(
  work: (services: VerificationServices) => Promise<R>,
): Promise<R> {
  const config = readConfig(process.env);
  if (isMainThread) {
    Logger.overrideLogger(new CommandLog());
    printInstallation(config);
  }
  const source = createDataSource(config, 'command');
  await connectFirst(config.databaseUrl, () => retrySlowConnection(() => source.initialize()));
  const pool = getPool(source);
  const masterKeys = new MasterKeys(pool, config);
  const keys = new PersonalKeys(pool, masterKeys, customerSubjects);
  const store = await openEventStore(pool, keys, config, readModels, plainTables);
  try {
    await retryLostConnections(() => masterKeys.onModuleInit());
    if (isMainThread) await retryLostConnections(() => store.onModuleInit());
    const verification = new Verification(pool, store, keys, readModels);
    const orphanedStreams = new OrphanedStreams(pool, store, readModels);
    return await work({ config, pool, store, keys, verification, orphanedStreams });
  } finally {
    await store.onApplicationShutdown();
    await source.destroy();
  }
}
