import pg from 'pg';
import type { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { getMigrationNames } from '#platform/database/migrate.js';
import { migrations } from '../../schema/migrations.js';
import { ok, warning, wrong, type Check, type Finding } from './finding.js';

const TIMEOUT_MS = 10_000;

export function checkService(config: Config): Check[] {
  return [() => checkDatabase(config), () => checkPublicUrl(config)];
}

async function checkDatabase({ databaseUrl }: Config): Promise<Finding[]> {
  const name = 'database';
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  // Each failure is also that of the statement that waits for it.
  client.on('error', () => undefined);
  try {
    await connectFirst(databaseUrl, () => client.connect());
    const { rows } = await client.query<{ name: string }>('select name from migrations');
    const applied = new Set(rows.map((row) => row.name));
    const missing = getMigrationNames(migrations).filter((migration) => !applied.has(migration));
    return missing.length === 0
      ? [ok(name, 'its tables are up to date')]
      : [wrong(name, `it lacks ${missing.join(', ')}: run inkpad migrate`)];
  } catch (error) {
    return [wrong(name, getErrorMessage(error))];
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function checkPublicUrl({ publicUrl }: Config): Promise<Finding[]> {
  const name = 'PUBLIC_URL';
  const url = `${publicUrl}/health/ready`;
  const advice = 'check that the api runs, and what your proxy passes';
  try {
    const { status } = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (status !== 200) return [warning(name, `${url} responds with ${status}: ${advice}`)];
  } catch (error) {
    const { cause } = error as Error;
    return [
      warning(
        name,
        `${url} cannot be reached from here (${getErrorMessage(cause ?? error)}): ${advice}`,
      ),
    ];
  }
  return new URL(publicUrl).protocol === 'https:'
    ? [ok(name, `${publicUrl} is ready`)]
    : [warning(name, `${publicUrl} has no https, which wallets and notifications need`)];
}
