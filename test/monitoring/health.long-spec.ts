import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { DispatcherModule } from '../../apps/dispatcher/dispatcher.module.js';
import { listenForHealth } from '#platform/operations/health-listener.js';
import { Readiness } from '#platform/operations/readiness.js';
import { WebhookDispatch } from '#outbound/dispatch/webhook-dispatch.service.js';
import {
  testConfig,
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { samples } from '../support/services/metrics.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startService } from '../support/services/service.js';

const SLOW = 300_000;

describe.each([
  ['api', /listening on (http:\S+)/],
  ['dispatcher', /health on port (\d+)/],
] as const)('the %s', (name, addressPattern) => {
  let database: TestDatabase;
  let line: DatabaseProxy;
  let program: Program;
  let address: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    line = await DatabaseProxy.to(database.url);
    program = startProgram(
      `dist/apps/${name}/main.js`,
      createTestEnvironment(line.url, {
        HEALTH_PORT: '0',
        LOG_LEVEL: 'info',
        RATE_LIMIT_PER_MINUTE: '1',
      }),
    );
    const output = await eventually(program.output, (text) => addressPattern.test(text), SLOW);
    const location = addressPattern.exec(output)?.[1] ?? '';
    address = location.startsWith('http') ? location : `http://127.0.0.1:${location}`;
  }, SLOW);

  afterAll(async () => {
    await program.kill('SIGTERM');
    await line.close();
    await database.close();
  });

  const get = (path: string) => fetchHealth(address + path);

  it('reports its health without a token, a rate limit or caching', async () => {
    for (const path of ['/health/live', '/health/ready', '/health/ready', '/health/ready']) {
      const { status, body, headers } = await get(path);
      expect([status, body]).toEqual([200, { status: 'ok' }]);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.has('ratelimit-limit')).toBe(false);
    }
    expect((await get('/health')).status).toBe(404);
  });

  it('is alive and not ready while the database is unavailable, and ready once it is back', async () => {
    await line.cut();
    const { body } = await eventually(
      () => get('/health/ready'),
      ({ status }) => status === 503,
    );
    expect(body).toMatchObject({ status: 'unavailable', checks: { database: 'unavailable' } });
    expect((await get('/health/live')).status).toBe(200);

    await line.mend();
    await eventually(
      () => get('/health/ready'),
      ({ status }) => status === 200,
    );
  });

  it('is alive and not ready while the database does not respond to 30 checks, and ready once it does', async () => {
    line.mute();
    const responses = await Promise.all(Array.from({ length: 30 }, () => get('/health/ready')));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([503]));
    expect((await get('/health/live')).status).toBe(200);

    line.unmute();
    await eventually(
      () => get('/health/ready'),
      ({ status }) => status === 200,
    );
  });

  it('exits on SIGTERM while the database does not respond', async () => {
    line.mute();
    expect((await get('/health/ready')).status).toBe(503);
    await program.kill('SIGTERM');
    // By itself, or when the time limit of its shutdown is over: neither killed nor crashed.
    const exitCode = await program.exitCode;
    const isLate = program.output().includes('shutdown has not finished in time');
    expect(isLate ? [1] : [0, null]).toContain(exitCode);
  });
});

it('a process whose shutdown hangs exits with 1 after a time limit', async () => {
  const stop = new URL('../../dist/libs/platform/kernel/stop.js', import.meta.url).href;
  const program = startProgram('--input-type=module', {}, [
    '--eval',
    `import { exitAfterTimeout } from '${stop}'; exitAfterTimeout(); setInterval(() => undefined, 1_000);`,
  ]);
  expect(await program.exitCode).toBe(1);
  expect(program.output()).toContain('shutdown has not finished in time');
});

it('an api that is shutting down is not ready', async () => {
  const service = await startService();
  // The first step of Nest's shutdown: the others end before a request could arrive.
  service.app.get(Readiness).onModuleDestroy();
  const { status, body } = await fetchHealth(`${service.baseUrl}/health/ready`);
  expect([status, body]).toEqual([
    503,
    { status: 'unavailable', checks: { process: 'unavailable' } },
  ]);
  await service.stop();
});

it('a dispatcher is ready while its webhook loops run, and neither before nor afterwards', async () => {
  const database = await createTestDatabase();
  const config = testConfig(database.url, { HEALTH_PORT: '0', LOG_LEVEL: 'silent' });
  const app = await NestFactory.createApplicationContext(DispatcherModule.forRoot(config), {
    logger: false,
  });
  const webhooks = app.get(WebhookDispatch);
  const readiness = app.get(Readiness);
  readiness.addRequiredPart('webhooks', () => webhooks.isRunning);
  const server = await listenForHealth(config, () => readiness.check());
  const { port } = server.address() as AddressInfo;
  const readReadiness = () => fetchHealth(`http://127.0.0.1:${port}/health/ready`);
  const readMetric = async () =>
    samples(await app.get(Registry, { strict: false }).metrics()).value('inkpad_ready');
  const notReady = {
    status: 503,
    body: { status: 'unavailable', checks: { database: 'ok', webhooks: 'unavailable' } },
  };

  expect(await readReadiness()).toMatchObject(notReady);
  expect(await readMetric()).toBe(0);
  webhooks.start();
  expect(await readReadiness()).toMatchObject({ status: 200 });
  expect(await readMetric()).toBe(1);
  await webhooks.stop(1_000);
  expect(await readReadiness()).toMatchObject(notReady);
  expect(webhooks.isAlive).toBe(true);

  server.close();
  server.closeAllConnections();
  await app.close();
  await database.close();
});

it('a dispatcher serves its health on 127.0.0.1, unless MONITORING_HOST says otherwise', async () => {
  const readReadiness = () => Promise.resolve({ status: 'ok' as const });
  for (const [settings, address] of [
    [{ HOST: '0.0.0.0' }, '127.0.0.1'],
    [{ HOST: '127.0.0.1', MONITORING_HOST: '0.0.0.0' }, '0.0.0.0'],
  ] as const) {
    const server = await listenForHealth(
      testConfig('postgres://u:p@localhost:5432/x', settings),
      readReadiness,
    );
    expect((server.address() as AddressInfo).address).toBe(address);
    server.close();
  }
});

it('an occupied HEALTH_PORT is reported with the port and what to do', async () => {
  const occupiedPort = createServer().listen(0, '127.0.0.1');
  await once(occupiedPort, 'listening');
  const { port } = occupiedPort.address() as AddressInfo;
  const config = testConfig('postgres://u:p@localhost:5432/x', { HEALTH_PORT: `${port}` });
  await expect(listenForHealth(config, () => Promise.resolve({ status: 'ok' }))).rejects.toThrow(
    new RegExp(`^HEALTH_PORT: cannot listen on port ${port} .*EADDRINUSE.*; choose another one`),
  );
  occupiedPort.close();
});

it('a dispatcher whose webhook loops have ended is not alive', async () => {
  const config = testConfig('postgres://u:p@localhost:5432/x', { HEALTH_PORT: '0' });
  let alive = true;
  const server = await listenForHealth(config, () => Promise.resolve({ status: 'ok' }), {
    check: 'webhooks',
    isAlive: () => alive,
  });
  const readLiveness = () =>
    fetchHealth(`http://127.0.0.1:${(server.address() as AddressInfo).port}/health/live`);
  expect(await readLiveness()).toMatchObject({ status: 200, body: { status: 'ok' } });
  alive = false;
  expect(await readLiveness()).toMatchObject({ status: 503, body: { status: 'unavailable' } });
  server.closeAllConnections();
  server.close();
});

it('an api is not ready when a migration is missing, and ready when the database has a newer one', async () => {
  const service = await startService();
  const readReadiness = () => fetchHealth(`${service.baseUrl}/health/ready`);
  await service.database.query(
    `insert into migrations (timestamp, name) values (9999, 'OfLater0000000009999')`,
  );
  expect(await readReadiness()).toMatchObject({ status: 200 });
  await service.stop();

  const database = await createTestDatabase();
  const { rows } = await database.query<{ name: string }>(
    'delete from migrations where id = (select max(id) from migrations) returning name',
  );
  const behind = await startService({}, database);
  expect(await fetchHealth(`${behind.baseUrl}/health/ready`)).toMatchObject({
    status: 503,
    body: { checks: { database: 'ok', migrations: 'unavailable' } },
  });
  expect(rows).toHaveLength(1);
  await behind.stop();
});

async function fetchHealth(
  url: string,
): Promise<{ status: number; headers: Headers; body: unknown }> {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, body: await response.json() };
}
