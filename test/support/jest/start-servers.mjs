import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile, execFileSync } from 'node:child_process';
import { startPostgres } from '../../../apps/cli/local-postgres/embedded-postgres.mjs';
import { startEventStoreDbProcess } from '../emulators/eventstoredb/as-process.mjs';

/**
 * A real PostgreSQL for each of the run's workers; test files clone their databases from its migrated template.
 * Readers of the log stop below the oldest transaction on the whole server: files that run at the same time
 * must not share one. For a run on the emulator of EventStoreDB, one of those in a process of its own: there each database
 * has a prefix, and no test that waits for a program stops it.
 *
 * @param {{ maxWorkers: number }} run
 */
export default async function startServers({ maxWorkers }) {
  const started = await startAll(maxWorkers);
  globalThis.testPostgres = started.flatMap(({ value }) => value ?? []);
  const failed = started.find(({ status }) => status === 'rejected');
  if (failed) {
    await Promise.all(globalThis.testPostgres.map((postgres) => postgres.remove()));
    throw failed.reason;
  }
  process.env.TEST_DATABASES = JSON.stringify(
    globalThis.testPostgres.map(({ url, ownerUrl }) => ({ url, ownerUrl })),
  );
  if (process.env.TEST_ENGINE !== 'eventstoredb' || process.env.EVENT_STORE_URL) return;
  globalThis.testEventStore = await startEventStoreDbProcess();
  process.env.TEST_EVENT_STORE_URL = globalThis.testEventStore.connectionString;
}

/** Migrates one server, and starts the others on copies of its data: a sixth of the processor time for six. */
async function startAll(count) {
  const [dataDir, ...copies] = Array.from({ length: count }, createDataFolder);
  const migrated = await startMigrated(dataDir);
  // Where PostgreSQL's own user cannot reach the folder, the data lie elsewhere, and a copy would name the same place.
  if (!migrated.dataPath.startsWith(dataDir)) {
    return [
      { status: 'fulfilled', value: migrated },
      ...(await Promise.allSettled(copies.map(startMigrated))),
    ];
  }
  await migrated.stop();
  for (const copy of copies) execFileSync('cp', ['-a', `${dataDir}/.`, copy]);
  // The first one takes its port back, so that the others find theirs in use and choose new ones.
  const first = await Promise.allSettled([start(dataDir)]);
  return [...first, ...(await Promise.allSettled(copies.map(start)))];
}

function createDataFolder() {
  const dataDir = mkdtempSync(join(tmpdir(), 'postgres-'));
  chmodSync(dataDir, 0o711);
  return dataDir;
}

function start(dataDir) {
  return startPostgres({
    dataDir,
    tie: true,
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_connections: 300,
    },
  });
}

async function startMigrated(dataDir) {
  const postgres = await start(dataDir);
  const { code, output } = await migrate({
    ...process.env,
    DATABASE_URL: postgres.url,
    DATABASE_MIGRATION_URL: postgres.ownerUrl,
    DATA_DIR: dataDir,
  });
  if (code !== 0) {
    await postgres.remove();
    throw new Error(`migration failed:\n${output}`);
  }
  return postgres;
}

/** @param {NodeJS.ProcessEnv} env */
function migrate(env) {
  return new Promise((resolve) => {
    execFile(process.execPath, ['dist/apps/cli/migrate.js'], { env }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, output: stdout + stderr }),
    );
  });
}
