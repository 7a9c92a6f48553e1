import { chmodSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import {
  startPostgres,
  type EmbeddedPostgres,
} from '../../../apps/cli/local-postgres/embedded-postgres.mjs';
import { runNode } from '../services/program.js';
import { createTestEnvironment, type TestDatabase } from './database.js';

/** A PostgreSQL of one test alone, with settings of its own, a migrated database, and its log. */
export class OwnServer implements TestDatabase {
  readonly query: pg.Pool['query'];

  private constructor(
    readonly postgres: EmbeddedPostgres,
    private readonly folder: string,
    private readonly pool: pg.Pool,
  ) {
    this.query = pool.query.bind(pool);
  }

  static async start(settings: Record<string, string | number>): Promise<OwnServer> {
    const folder = mkdtempSync(join(tmpdir(), 'inkpad-postgres-'));
    chmodSync(folder, 0o711);
    const postgres = await startPostgres({ dataDir: folder, tie: true, settings });
    const pool = new pg.Pool({
      connectionString: postgres.ownerUrl,
      max: 1,
      allowExitOnIdle: true,
    });
    pool.on('error', () => undefined);
    const server = new OwnServer(postgres, folder, pool);
    server.migrate();
    return server;
  }

  get url(): string {
    return this.postgres.url;
  }

  get ownerUrl(): string {
    return this.postgres.ownerUrl;
  }

  migrate(): void {
    const environment = { DATABASE_MIGRATION_URL: this.ownerUrl };
    const { status, output } = runNode(
      ['dist/apps/cli/migrate.js'],
      createTestEnvironment(this.url, environment),
    );
    if (status !== 0) throw new Error(output);
  }

  /** Reads all that the server has written to its log. */
  readLog(): string {
    return readFileSync(join(this.folder, 'postgres.log'), 'utf8');
  }

  async close(): Promise<void> {
    await this.pool.end();
    await this.postgres.remove();
  }
}
