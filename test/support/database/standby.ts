import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import type { EmbeddedPostgres } from '../../../apps/cli/local-postgres/embedded-postgres.mjs';
import { eventually } from '../jest/eventually.js';
import { findFreePort } from '../services/program.js';

export type Standby = {
  url: string;
  /** As the administrator. */
  query: pg.Pool['query'];
  stop: () => Promise<void>;
};

/**
 * A streaming standby of a server that is stopped at the moment: its data are copied.
 * @param start starts the primary again, on the same port
 */
export async function startStandby(
  primary: EmbeddedPostgres,
  start: () => Promise<EmbeddedPostgres>,
): Promise<{ standby: Standby; primary: EmbeddedPostgres }> {
  const data = join(dirname(primary.dataPath), 'standby');
  const [program = ''] = readFileSync(join(primary.dataPath, 'postmaster.opts'), 'utf8').split(
    ' "',
  );
  cpSync(primary.dataPath, data, { recursive: true, preserveTimestamps: true });
  const { uid, gid } = statSync(primary.dataPath);
  writeFileSync(join(data, 'standby.signal'), '');
  rmSync(join(data, 'postmaster.pid'), { force: true });
  chmodSync(data, 0o700);
  if (process.getuid?.() === 0) execFileSync('chown', ['-R', `${uid}:${gid}`, data]);
  const restarted = await start();
  const owner = new URL(restarted.ownerUrl);
  const port = await findFreePort();
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    hot_standby: 'on',
    primary_conninfo: `host=127.0.0.1 port=${owner.port} user=${owner.username} password=${owner.password}`,
  };
  const child = spawn(
    program,
    [
      '-D',
      data,
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    { stdio: 'ignore', ...(process.getuid?.() === 0 && { uid, gid }), cwd: data },
  );
  const gone = once(child, 'exit');
  const toStandby = (text: string) => Object.assign(new URL(text), { port: String(port) }).href;
  const pool = new pg.Pool({
    connectionString: toStandby(restarted.ownerUrl),
    max: 1,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  await eventually(
    () =>
      pool.query('select').then(
        () => true,
        () => false,
      ),
    (isReady) => isReady,
  );
  return {
    primary: restarted,
    standby: {
      url: toStandby(restarted.url),
      query: pool.query.bind(pool),
      stop: async () => {
        await pool.end();
        child.kill('SIGQUIT');
        await gone;
      },
    },
  };
}
