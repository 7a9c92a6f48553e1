import type pg from 'pg';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { connectFirst } from '#platform/database/first-connection.js';
import {
  createApplicationName,
  createDataSource,
  getPool,
} from '#platform/database/data-source.js';
import { MasterKeys } from '#platform/database/master-keys.js';
import { EngineMove, type Engine } from './moves/engine-move.js';
import { parseProgram } from './programs.js';
import { runProgram, printInstallation } from './run-program.js';
import { refuseWhileConnected, withServicesStopped } from './stopped-services.js';

const NAME = 'move-events';
const COPY = 'move-events copy';

const { to } = parseProgram(NAME).opts<{ to: Engine }>();

/**
 * Copies the history to the other engine, in log order: ids, revisions, metadata and hashes stay the same.
 * May be killed at any time and run again. Rows and claims are in PostgreSQL either way.
 */
runProgram(async () => {
  const config = readConfig(process.env);
  const { eventStoreUrl } = config;
  if (eventStoreUrl === null) {
    throw new ConfigError(
      'EVENT_STORE_URL must be set: one of the two engines is KurrentDB (EventStoreDB).',
    );
  }
  printInstallation(config);
  await withServicesStopped(config.databaseUrl, NAME, (guard) =>
    move(guard, Object.assign(config, { eventStoreUrl }), to),
  );
});

async function move(
  guard: pg.Client,
  config: Config & { eventStoreUrl: string },
  to: Engine,
): Promise<void> {
  const database = await connectFirst(config.databaseUrl, () =>
    createDataSource(config, COPY).initialize(),
  );
  const pool = getPool(database);
  const masterKeys = new MasterKeys(pool, config);
  await masterKeys.onModuleInit();
  const moving = new EngineMove(pool, config, masterKeys, to);
  try {
    // An earlier run may have been killed after the switch. What it has completed in PostgreSQL, KurrentDB lacks.
    const isOver = to === 'postgres' && (await moving.isMoved());
    const copied = isOver ? undefined : await moving.copy();
    await refuseWhileConnected(guard, createApplicationName(config, COPY));
    if (copied) await moving.switchOver(copied);
    if (to === 'postgres') await moving.completeCommits();
    console.log(
      copied
        ? `${to} holds all ${copied.events} events of ${copied.heads.size} streams, ${copied.copied} of them copied in this run; order, ids and hashes match`
        : 'postgres holds the history since an earlier run, and every commit is complete',
    );
  } finally {
    await moving.close();
    await database.destroy();
  }
}
