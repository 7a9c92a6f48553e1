import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../../apps/cli/local-postgres/embedded-postgres.mjs';

type Server = Awaited<ReturnType<typeof startPostgres>>;

const SETTINGS = { full_page_writes: 'on', wal_keep_size: '256MB', max_connections: 200 };

/** Two PostgreSQL servers of which one streams its changes to the other. */
export class ReplicatedPostgres {
  private constructor(
    readonly primary: Server,
    readonly standby: Server,
    private readonly folders: { primary: string; standby: string },
  ) {}

  /** Creates both, with an empty database. The standby begins as a copy of the primary's files. */
  static async start(): Promise<ReplicatedPostgres> {
    const folders = { primary: createFolder(), standby: createFolder() };
    const created = await startPostgres({ dataDir: folders.primary, settings: SETTINGS });
    await created.stop();
    execFileSync('cp', ['-a', `${folders.primary}/.`, folders.standby]);
    const primary = await startPostgres({ dataDir: folders.primary, settings: SETTINGS });
    const standby = await startStandby(folders.standby, primary);
    return new ReplicatedPostgres(primary, standby, folders);
  }

  /**
   * Makes the standby the primary and the other way round, as a planned switchover does: the primary stops once the
   * standby has everything.
   */
  async switchOver(): Promise<ReplicatedPostgres> {
    await this.primary.stop();
    await run(this.standby, 'select pg_promote()');
    const demoted = await startStandby(this.folders.primary, this.standby);
    return new ReplicatedPostgres(this.standby, demoted, {
      primary: this.folders.standby,
      standby: this.folders.primary,
    });
  }

  async stop(): Promise<void> {
    await this.standby.remove();
    await this.primary.remove();
  }
}

async function startStandby(dataDir: string, primary: Server): Promise<Server> {
  const data = join(dataDir, 'postgres');
  const signal = join(data, 'standby.signal');
  writeFileSync(signal, '');
  const { uid, gid } = statSync(data);
  chownSync(signal, uid, gid);
  const { username, password } = new URL(primary.ownerUrl);
  const primary_conninfo = `host=127.0.0.1 port=${primary.port} user=${username} password=${password}`;
  return startPostgres({ dataDir, settings: { ...SETTINGS, primary_conninfo } });
}

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'replicated-'));
  // The server does not run as root.
  chmodSync(folder, 0o711);
  return folder;
}

async function run(server: Server, statement: string): Promise<void> {
  const client = new pg.Client(server.ownerUrl);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
