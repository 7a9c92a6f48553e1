import { DataSource, type MigrationInterface } from 'typeorm';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { connectFirst } from './first-connection.js';
import { withConnection } from './connection.js';
import { createDataSourceOptions, NO_LIMITS, getPool } from './data-source.js';
import type { LimitedStatement } from './database-client.js';
import { LOCKS } from './locks.js';
import { ensureServiceRole, grantToService } from './roles.js';
import { assertNoUnfinishedRestore } from './unfinished-restore.js';

/** A migration of TypeORM. The digits at the end of its name are its number: TypeORM runs migrations in their order. */
export type Migration = new () => MigrationInterface & { readonly name: string };

/** Lists migrations as the table `migrations` names them. */
export function getMigrationNames(migrations: readonly Migration[]): string[] {
  return migrations.map((migration) => new migration().name);
}

/**
 * Finds the migrations that `inkpad migrate` would still run. The database may be ahead of this program: during a rolling
 * upgrade the version before runs on the tables of the next one.
 */
export async function findMissingMigrations(
  source: DataSource,
  limit: Pick<LimitedStatement, 'query_timeout'> = {},
): Promise<string[]> {
  const statement: LimitedStatement = { text: 'select name from migrations', ...limit };
  const { rows } = await getPool(source).query<{ name: string }>(statement);
  const applied = new Set(rows.map(({ name }) => name));
  const names = source.migrations.map(({ name, constructor }) => name ?? constructor.name);
  return names.filter((name) => !applied.has(name));
}

/**
 * Runs the missing ones of these migrations as the owner of the tables, each in a transaction. An advisory lock lets only
 * one process migrate at a time.
 * @param only for a restore: the names of those that the backup was made with
 * @returns the names of the migrations that ran
 * @throws ConfigError when the database holds a restore that was not finished, or the service's role cannot be created
 */
export async function migrate(
  config: PlatformConfig,
  migrations: readonly Migration[],
  only?: readonly string[],
): Promise<string[]> {
  const owner = { ...config, databaseUrl: config.databaseMigrationUrl };
  const source = new DataSource({
    ...createDataSourceOptions(owner, 'migrate', NO_LIMITS),
    migrations: migrations.filter((migration) => only?.includes(new migration().name) ?? true),
    migrationsTransactionMode: 'each',
  });
  await connectFirst(owner.databaseUrl, () => source.initialize());
  try {
    return await withConnection(getPool(source), async (client) => {
      await client.query('select pg_advisory_lock($1)', [LOCKS.migration]);
      try {
        if (!only) await assertNoUnfinishedRestore(client);
        await ensureServiceRole(client, config);
        const executed = await source.runMigrations();
        await grantToService(client, config);
        return executed.map((migration) => migration.name);
      } finally {
        await client.query('select pg_advisory_unlock($1)', [LOCKS.migration]);
      }
    });
  } finally {
    await source.destroy();
  }
}
