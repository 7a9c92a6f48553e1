import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../jest/eventually.js';
import { findFreePort } from '../services/program.js';

/** PgBouncer runs as nobody where the tests run as root, because it refuses to be root. */
const NOBODY = 65_534;

export type PgBouncer = {
  /** The same database and role, through the pooler. */
  url: string;
  output: () => string;
  stop: () => Promise<void>;
};

/**
 * This machine's pgbouncer in front of a database.
 * @param settings beside those that say where it listens and who may enter
 */
export async function startPgBouncer(
  databaseUrl: string,
  settings: Record<string, string>,
): Promise<PgBouncer> {
  const server = new URL(databaseUrl);
  const port = await findFreePort();
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-pgbouncer-'));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    chmodSync(path, 0o644);
    return path;
  };
  chmodSync(folder, 0o755);
  const users = file('users', `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  const fileSettings = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'plain',
    auth_file: users,
    ...settings,
  };
  const lines = Object.entries(fileSettings).map(([name, value]) => `${name} = ${value}`);
  const ini = file(
    'pgbouncer.ini',
    `[databases]\n* = host=${server.hostname} port=${server.port}\n[pgbouncer]\n${lines.join('\n')}\n`,
  );
  const child = spawn('pgbouncer', [ini], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(process.getuid?.() === 0 && { uid: NOBODY, gid: NOBODY }),
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const gone = once(child, 'exit');
  await once(child, 'spawn');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  await eventually(
    () => isReady(url.href).catch((error: unknown) => `${String(error)} ${output}`),
    (value) => value === true,
  );
  return {
    url: url.href,
    output: () => output,
    stop: async () => {
      child.kill('SIGINT');
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
      await gone;
      clearTimeout(late);
      rmSync(folder, { recursive: true });
    },
  };
}

async function isReady(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } finally {
    await client.end();
  }
}
