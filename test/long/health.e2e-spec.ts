import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import { Registry } from 'prom-client';
import { DispatcherModule } from '../../apps/dispatcher/src/dispatcher.module.js';
import { listenForHealth } from '#operations/health-listener.js';
import { Readiness } from '#operations/readiness.js';
import { WebhookDispatch } from '#dispatch/webhook-dispatch.service.js';
import {
  testConfig,
  testDatabase,
  testEnvironment,
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
] as const)('the health of the %s', (name, where) => {
  let database: TestDatabase;
  let line: DatabaseProxy;
  let program: Program;
  let address: string;

  beforeAll(async () => {
    database = await testDatabase();
    line = await DatabaseProxy.to(database.url);
    program = startProgram(
      `dist/apps/${name}/src/main.js`,
      testEnvironment(line.url, {
        HEALTH_PORT: '0',
        LOG_LEVEL: 'info',
        RATE_LIMIT_PER_MINUTE: '1',
      }),
    );
    const output = await eventually(program.output, (text) => where.test(text), SLOW);
    const location = where.exec(output)?.[1] ?? '';
    address = location.startsWith('http') ? location : `http://127.0.0.1:${location}`;
  }, SLOW);

  afterAll(async () => {
    await program.kill('SIGTERM');
    await line.close();
    await database.close();
  });

  const get = (path: string) => ask(address + path);

  it('is told without a token, not counted, and kept by no one on the way', async () => {
    for (const path of ['/health/live', '/health/ready', '/health/ready', '/health/ready']) {
      const { status, body, headers } = await get(path);
      expect([status, body]).toEqual([200, { status: 'ok' }]);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(headers.has('ratelimit-limit')).toBe(false);
    }
    expect((await get('/health')).status).toBe(404);
  });

  it('is not ready while the database is unavailable, but alive, and ready once it is back', async () => {
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

  it('is not ready when the database leaves a question open, however many ask', async () => {
    line.mute();
    const answers = await Promise.all(Array.from({ length: 30 }, () => get('/health/ready')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect((await get('/health/live')).status).toBe(200);

    line.unmute();
    await eventually(
      () => get('/health/ready'),
      ({ status }) => status === 200,
    );
  });

  it('ends when it is told to stop while questions are open', async () => {
    line.mute();
    expect((await get('/health/ready')).status).toBe(503);
    await program.kill('SIGTERM');
    // By itself after the signal, or cut off when its time is over: never killed or crashed.
    expect([0, null]).toContain(await program.exitCode);
  });
});

it('a process whose work hangs is cut off after it was told to stop', async () => {
  const stop = new URL('../../dist/libs/platform/kernel/src/stop.js', import.meta.url).href;
  const program = startProgram('--input-type=module', {}, [
    '--eval',
    `import { exitAfterTimeout } from '${stop}'; exitAfterTimeout(); setInterval(() => undefined, 1_000);`,
  ]);
  expect(await program.exitCode).toBe(0);
  expect(program.output()).toContain('shutdown has not finished in time');
});

it('an api that has begun to shut down is not ready any more', async () => {
  const service = await startService();
  // The first that Nest does; the rest is over before anybody could ask.
  service.app.get(Readiness).onModuleDestroy();
  const { status, body } = await ask(`${service.baseUrl}/health/ready`);
  expect([status, body]).toEqual([
    503,
    { status: 'unavailable', checks: { process: 'unavailable' } },
  ]);
  await service.stop();
});

it('a dispatcher is ready while its loops run', async () => {
  const database = await testDatabase();
  const config = testConfig(database.url, { HEALTH_PORT: '0', LOG_LEVEL: 'silent' });
  const app = await NestFactory.createApplicationContext(DispatcherModule.forRoot(config), {
    logger: false,
  });
  const webhooks = app.get(WebhookDispatch);
  const readiness = app.get(Readiness);
  readiness.addRequiredPart('webhooks', () => webhooks.isRunning);
  const server = await listenForHealth(config, () => readiness.check());
  const { port } = server.address() as AddressInfo;
  const ready = () => ask(`http://127.0.0.1:${port}/health/ready`);
  const metric = async () =>
    samples(await app.get(Registry, { strict: false }).metrics()).value('inkpad_ready');
  const notReady = {
    status: 503,
    body: { status: 'unavailable', checks: { database: 'ok', webhooks: 'unavailable' } },
  };

  expect(await ready()).toMatchObject(notReady);
  expect(await metric()).toBe(0);
  webhooks.start();
  expect(await ready()).toMatchObject({ status: 200 });
  expect(await metric()).toBe(1);
  await webhooks.stop(1_000);
  expect(await ready()).toMatchObject(notReady);
  expect(webhooks.isAlive).toBe(true);

  server.close();
  server.closeAllConnections();
  await app.close();
  await database.close();
});

it('only this machine asks about the dispatcher, unless the settings say otherwise', async () => {
  const ready = () => Promise.resolve({ status: 'ok' as const });
  for (const [settings, address] of [
    [{ HOST: '0.0.0.0' }, '127.0.0.1'],
    [{ HOST: '127.0.0.1', MONITORING_HOST: '0.0.0.0' }, '0.0.0.0'],
  ] as const) {
    const server = await listenForHealth(
      testConfig('postgres://u:p@localhost:5432/x', settings),
      ready,
    );
    expect((server.address() as AddressInfo).address).toBe(address);
    server.close();
  }
});

it('a port that is taken is named, with what to do', async () => {
  const occupiedPort = createServer().listen(0, '127.0.0.1');
  await once(occupiedPort, 'listening');
  const { port } = occupiedPort.address() as AddressInfo;
  const config = testConfig('postgres://u:p@localhost:5432/x', { HEALTH_PORT: `${port}` });
  await expect(listenForHealth(config, () => Promise.resolve({ status: 'ok' }))).rejects.toThrow(
    new RegExp(`^HEALTH_PORT: cannot listen on port ${port} .*EADDRINUSE.*; choose another one`),
  );
  occupiedPort.close();
});

it('a dispatcher without its loops is not alive', async () => {
  const config = testConfig('postgres://u:p@localhost:5432/x', { HEALTH_PORT: '0' });
  let alive = true;
  const server = await listenForHealth(config, () => Promise.resolve({ status: 'ok' }), {
    check: 'webhooks',
    isAlive: () => alive,
  });
  const live = () => ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}/health/live`);
  expect(await live()).toMatchObject({ status: 200, body: { status: 'ok' } });
  alive = false;
  expect(await live()).toMatchObject({ status: 503, body: { status: 'unavailable' } });
  server.closeAllConnections();
  server.close();
});

it('an api on tables that a migration is missing from is not ready; a newer one does no harm', async () => {
  const service = await startService();
  const ready = () => ask(`${service.baseUrl}/health/ready`);
  await service.database.query(
    `insert into migrations (timestamp, name) values (9999, 'OfLater0000000009999')`,
  );
  expect(await ready()).toMatchObject({ status: 200 });
  await service.stop();

  const database = await testDatabase();
  const { rows } = await database.query<{ name: string }>(
    'delete from migrations where id = (select max(id) from migrations) returning name',
  );
  const behind = await startService({}, database);
  expect(await ask(`${behind.baseUrl}/health/ready`)).toMatchObject({
    status: 503,
    body: { checks: { database: 'ok', migrations: 'unavailable' } },
  });
  expect(rows).toHaveLength(1);
  await behind.stop();
});

async function ask(url: string): Promise<{ status: number; headers: Headers; body: unknown }> {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, body: await response.json() };
}
