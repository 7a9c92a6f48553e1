import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createTestEnvironment } from '../support/database/database.js';
import { OwnServer } from '../support/database/own-server.js';
import { EXPIRED, TestAuthority } from '../support/fixtures/certificates.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';

const SLOW = 300_000;
const GOOD = 'DNS:localhost,IP:127.0.0.1';

const folder = mkdtempSync(join(tmpdir(), 'inkpad-tls-'));
chmodSync(folder, 0o711);
const createFolder = (name: string) => {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
};
const authority = new TestAuthority(createFolder('authority'));
const stranger = new TestAuthority(createFolder('stranger'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program to its end. */
async function run(file: string, environment: NodeJS.ProcessEnv) {
  const program = startProgram(file, environment);
  return { code: await program.exitCode, output: program.output() };
}

describe('PostgreSQL with a certificate of an authority of its own', () => {
  let server: OwnServer;
  const files = { key: join(folder, 'postgres.key'), certificate: join(folder, 'postgres.pem') };

  /** Makes the server use a certificate for its next connections. */
  const useCertificate = async (issuer: TestAuthority, ...about: [string, typeof EXPIRED?]) => {
    const [hosts, validity] = about;
    issuer.issue(hosts, files, validity);
    const { uid, gid } = statSync(server.postgres.dataPath);
    for (const file of Object.values(files)) chownSync(file, uid, gid);
    chmodSync(files.key, 0o600);
    await server.query(`alter system set ssl_key_file = '${files.key}'`);
    await server.query(`alter system set ssl_cert_file = '${files.certificate}'`);
    await server.query('alter system set ssl = on');
    const { rows } = await server.query<{ now: Date }>('select now() from pg_reload_conf()');
    await eventually(
      () => server.query<{ at: Date }>('select pg_conf_load_time() as at'),
      (loaded) => Number(loaded.rows[0]?.at) >= Number(rows[0]?.now),
    );
  };
  const createUrl = (parameters: string, host = 'localhost') =>
    `${server.url.replace('127.0.0.1', host)}?${parameters}`;
  const rootcert = (file: string) => `sslrootcert=${encodeURIComponent(file)}`;
  const VERIFY = 'sslmode=verify-full';
  const createSettings = (url: string, settings: NodeJS.ProcessEnv = {}) =>
    createTestEnvironment(url, { LOG_LEVEL: 'info', START_WAIT_SECONDS: '30', ...settings });
  const runApi = (url: string) => run('dist/apps/api/main.js', createSettings(url));

  beforeAll(async () => {
    server = await OwnServer.start({});
    await useCertificate(authority, GOOD);
  }, SLOW);
  afterAll(() => server.close(), SLOW);

  it.each([
    ['sslrootcert', () => ({ url: createUrl(`${VERIFY}&${rootcert(authority.file)}`), ca: '' })],
    ['NODE_EXTRA_CA_CERTS', () => ({ url: createUrl(VERIFY), ca: authority.file })],
  ])(
    'is used over TLS by every connection of an api that knows the authority by %s',
    async (_setting, createCase) => {
      const { url, ca } = createCase();
      const environment = createSettings(url, { ...(ca !== '' && { NODE_EXTRA_CA_CERTS: ca }) });
      const api = startProgram('dist/apps/api/main.js', environment);
      try {
        await eventually(api.output, (text) => text.includes('listening on'), SLOW);
        const { rows } = await server.query<{ ssl: boolean; count: number }>(
          `select s.ssl, count(*)::int as count from pg_stat_ssl s join pg_stat_activity a using (pid)
           where a.application_name like 'inkpad %' group by s.ssl`,
        );
        expect(rows).toEqual([{ ssl: true, count: expect.any(Number) }]);
      } finally {
        await api.kill('SIGTERM');
      }
    },
    SLOW,
  );

  it('is migrated over TLS', async () => {
    const parameters = `?${VERIFY}&${rootcert(authority.file)}`;
    const { code, output } = await run(
      'dist/apps/cli/migrate.js',
      createSettings(server.url + parameters, {
        DATABASE_MIGRATION_URL: server.ownerUrl + parameters,
      }),
    );
    expect(output).toContain('the database is up to date');
    expect(code).toBe(0);
  });

  it('ends the start at once, in one sentence, when nobody trusts the authority', async () => {
    const { code, output } = await runApi(createUrl(`${VERIFY}&${rootcert(stranger.file)}`));
    expect(output).toMatch(
      /^The database inkpad at localhost:\d+ as inkpad_app cannot be used: the authority that issued its certificate is not trusted: name its file in NODE_EXTRA_CA_CERTS, or for PostgreSQL in sslrootcert \([A-Z_]+\)\.\n$/,
    );
    expect(code).toBe(78);
    expect((await runApi(createUrl(VERIFY))).output).toContain('is not trusted');
  });

  it('ends the start likewise when the file of the authority is missing', async () => {
    const { code, output } = await runApi(createUrl(`${VERIFY}&${rootcert('/no/such/file')}`));
    expect(output).toMatch(
      /^Settings that cannot be used:\n {2}DATABASE_URL: names a file in sslrootcert that cannot be read: \/no\/such\/file: it does not exist \(ENOENT\)\n$/,
    );
    expect(code).toBe(78);
  });

  it('ends the start likewise when the certificate is for another host', async () => {
    await useCertificate(authority, 'DNS:db.example');
    const { code, output } = await runApi(createUrl(`${VERIFY}&${rootcert(authority.file)}`));
    expect(output).toMatch(
      /^The database .* cannot be used: its certificate is for DNS:db\.example, and not for localhost \(ERR_TLS_CERT_ALTNAME_INVALID\)\.\n$/,
    );
    expect(code).toBe(78);
  });

  it('ends the start likewise when the certificate has expired', async () => {
    await useCertificate(authority, GOOD, EXPIRED);
    const { code, output } = await runApi(createUrl(`${VERIFY}&${rootcert(authority.file)}`));
    expect(output).toMatch(
      /^The database .* cannot be used: its certificate has expired \(CERT_HAS_EXPIRED\)\.\n$/,
    );
    expect(code).toBe(78);
  });

  it('ends the start likewise when the server has no TLS', async () => {
    await server.query('alter system set ssl = off');
    await server.query('select pg_reload_conf()');
    await eventually(
      async () => {
        const client = new pg.Client(`${server.ownerUrl}?sslmode=no-verify`);
        return client.connect().then(
          () => client.end().then(() => 'TLS'),
          () => 'none',
        );
      },
      (kind) => kind === 'none',
    );
    const { code, output } = await runApi(createUrl(`${VERIFY}&${rootcert(authority.file)}`));
    expect(output).toMatch(/^The database .* cannot be used: .*does not support SSL.*\.\n$/);
    expect(code).toBe(78);
  });
});

describe('Redis with a certificate of an authority of its own', () => {
  let database: OwnServer;
  const redisFolder = createFolder('redis');
  const files = {
    key: join(redisFolder, 'redis.key'),
    certificate: join(redisFolder, 'redis.pem'),
  };

  beforeAll(async () => {
    database = await OwnServer.start({});
  }, SLOW);
  afterAll(() => database.close(), SLOW);

  /** Starts a Redis that speaks TLS alone. */
  async function startRedis(): Promise<{ child: ChildProcess; port: number }> {
    const port = await findFreePort();
    const tls = ['--tls-port', `${port}`, '--tls-auth-clients', 'no', '--tls-ca-cert-file'];
    const own = ['--tls-cert-file', files.certificate, '--tls-key-file', files.key];
    const child = spawn(
      'redis-server',
      ['--port', '0', ...tls, authority.file, ...own, '--dir', redisFolder, '--save', ''],
      { stdio: 'ignore' },
    );
    await once(child, 'spawn');
    return { child, port };
  }

  /** Starts an api with it, and reads the log and the health. */
  async function readStart(authorityFile: string): Promise<{ output: string; health: unknown }> {
    const { child, port: redisPort } = await startRedis();
    const port = await findFreePort();
    const api = startProgram(
      'dist/apps/api/main.js',
      createTestEnvironment(database.url, {
        LOG_LEVEL: 'info',
        PORT: `${port}`,
        REDIS_URL: `rediss://localhost:${redisPort}`,
        NODE_EXTRA_CA_CERTS: authorityFile,
      }),
    );
    try {
      await eventually(api.output, (text) => text.includes('listening on'), SLOW);
      const health = await (await fetch(`http://127.0.0.1:${port}/health/ready`)).json();
      return { output: api.output(), health };
    } finally {
      await api.kill('SIGTERM');
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
  }

  it(
    'counts the requests of an api that trusts the authority',
    async () => {
      authority.issue(GOOD, files);
      const { output, health } = await readStart(authority.file);
      expect(output).not.toContain('Redis is unavailable');
      expect(health).toEqual({ status: 'ok' });
    },
    SLOW,
  );

  it.each([
    ['nobody trusts its authority', stranger, GOOD, undefined, 'is not trusted'],
    ['it is for another host', authority, 'DNS:x.example', undefined, 'is for DNS:x.example, and'],
    ['it has expired', authority, GOOD, EXPIRED, 'its certificate has expired (CERT_HAS_EXPIRED)'],
  ])(
    'is named with its fault in the log when %s, and the api counts by itself',
    async (_fault, issuer, hosts, validity, description) => {
      issuer.issue(hosts, files, validity);
      const { output, health } = await readStart(authority.file);
      const [line = ''] = output
        .split('\n')
        .filter((candidate) => candidate.includes('Redis is unavailable'));
      expect(line).toContain(description);
      expect(health).toMatchObject({ status: 'ok', checks: { redis: 'unavailable' } });
    },
    SLOW,
  );
});
