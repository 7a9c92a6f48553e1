import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { startPostgres } from '../../scripts/embedded-postgres.mjs';

/** One real PostgreSQL for the whole run; test files clone their databases from a migrated template. */
export default async function startTestPostgres() {
  const dataDir = mkdtempSync(join(tmpdir(), 'inkpad-test-'));
  const postgres = await startPostgres({
    dataDir,
    tie: true,
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_connections: 300,
    },
  });
  const migrated = spawnSync(process.execPath, ['dist/scripts/migrate.js'], {
    env: {
      ...process.env,
      DATABASE_URL: postgres.url,
      DATABASE_MIGRATION_URL: postgres.ownerUrl,
      DATA_DIR: dataDir,
    },
    encoding: 'utf8',
  });
  if (migrated.status !== 0) {
    await postgres.remove();
    throw new Error(`migration failed:\n${migrated.stdout}${migrated.stderr}`);
  }
  process.env.TEST_DATABASE_URL = postgres.url;
  process.env.TEST_DATABASE_OWNER_URL = postgres.ownerUrl;
  globalThis.testPostgres = postgres;
}
