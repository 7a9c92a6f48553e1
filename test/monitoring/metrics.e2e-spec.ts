import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { listenForMetrics } from '#platform/operations/metrics-listener.js';
import { getPort } from '#platform/operations/operator-server.js';
import { testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { samples, type Samples } from '../support/services/metrics.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

describe('the metrics of the api', () => {
  let service: LocalService;
  let till: Client;
  const read = async (): Promise<Samples> =>
    samples(await service.app.get(Registry, { strict: false }).metrics());

  beforeAll(async () => {
    service = await startService({ PAGE_RATE_LIMIT_PER_MINUTE: '2' });
    till = await service.newStore();
  });
  afterAll(() => service.stop());

  it('count requests by method, route pattern and status class', async () => {
    await till.get(`${till.store}/customers/4711`);
    await till.get(`${till.store}/customers/4712`);
    await till.get('/api/v1/nothing/at/all');
    const metrics = await eventually(read, (all) =>
      all.has('inkpad_http_request_seconds_count', { route: 'none' }),
    );
    expect(
      metrics.value('inkpad_http_request_seconds_count', {
        method: 'GET',
        route: '/api/v1/accounts/:account_id/customers/:id',
        status: '4xx',
      }),
    ).toBe(2);
    expect(
      metrics.value('inkpad_http_request_seconds_count', {
        method: 'GET',
        route: 'none',
        status: '4xx',
      }),
    ).toBe(1);
    expect(metrics.value('inkpad_http_requests_in_flight')).toBe(0);
    // Without the values: a duration may contain these digits too.
    expect(metrics.text.replaceAll(/^(\w+(?:\{.*\})?) \S+$/gm, '$1')).not.toContain('471');
    expect(metrics.text).not.toContain('nothing');
  });

  it('count a request under the status none when its connection breaks', async () => {
    const { port, hostname } = new URL(service.baseUrl);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(
      `POST ${till.store}/cards HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${till.token}\r\n`,
    );
    socket.write('Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
    await eventually(read, (all) => all.value('inkpad_http_requests_in_flight') === 1);
    socket.destroy();
    const metrics = await eventually(
      read,
      (all) => all.value('inkpad_http_requests_in_flight') === 0,
    );
    expect(
      metrics.value('inkpad_http_request_seconds_count', {
        method: 'POST',
        route: '/api/v1/accounts/:account_id/cards',
        status: 'none',
      }),
    ).toBe(1);
  });

  it('count commits, command waits, committed events and idempotent replays', async () => {
    const before = await read();
    const key = { 'idempotency-key': randomUUID() };
    const createCard = () =>
      till.send('POST', `${till.store}/cards`, { card: { name: 'Tea' } }, key);
    await createCard();
    await createCard();
    const metrics = await read();
    const getIncrease = (name: string, labels = {}) =>
      (metrics.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
    expect(getIncrease('inkpad_commit_seconds_count', { result: 'committed' })).toBe(1);
    expect(getIncrease('inkpad_command_wait_seconds_count')).toBe(1);
    expect(getIncrease('inkpad_events_committed_total')).toBeGreaterThanOrEqual(1);
    expect(getIncrease('inkpad_idempotent_replays_total')).toBe(1);
  });

  it('count rate-limited requests', async () => {
    for (let i = 0; i < 3; i++) await fetch(`${service.baseUrl}/docs`);
    const metrics = await read();
    expect(metrics.value('inkpad_http_rate_limited_total', { by: 'page_address' })).toBe(1);
  });

  it('show the connection pool, each dependency that is reachable, and readiness', async () => {
    // The process itself looks at the database now and then.
    const metrics = await eventually(
      read,
      (now) => now.value('inkpad_database_connections', { state: 'busy' }) === 0,
    );
    expect(metrics.value('inkpad_database_connections', { state: 'idle' })).toBeGreaterThan(0);
    expect(metrics.value('inkpad_database_connections_max')).toBe(10);
    expect(metrics.value('inkpad_database_waiting')).toBe(0);
    for (const part of ['database', 'event_store', 'migrations']) {
      expect(metrics.value('inkpad_reachable', { part })).toBe(1);
    }
    expect(metrics.value('inkpad_ready')).toBe(1);
  });

  it('have no label for a store, customer or subscription', async () => {
    const { text } = await read();
    const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label));
    expect([...labels].sort()).toEqual([
      'by',
      'damage',
      'le',
      'method',
      'part',
      'resource',
      'result',
      'route',
      'state',
      'status',
    ]);
  });
});

describe('the metrics listener', () => {
  it('serves the metrics of the process at /metrics, and 404 elsewhere', async () => {
    const config = testConfig('postgres://u:p@localhost:5432/x', { METRICS_PORT: '0' });
    const server = await listenForMetrics(config, 'dispatcher', new Registry());
    const baseUrl = `http://127.0.0.1:${getPort(server)}`;
    const response = await fetch(`${baseUrl}/metrics`);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    const metrics = samples(await response.text());
    expect(metrics.has('inkpad_build_info', { process: 'dispatcher' })).toBe(true);
    expect(metrics.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
    expect(metrics.has('process_resident_memory_bytes')).toBe(true);
    expect((await fetch(`${baseUrl}/`)).status).toBe(404);
    server.closeAllConnections();
    server.close();
  });

  it('listens on 127.0.0.1 whatever HOST is, unless MONITORING_HOST names another address', async () => {
    for (const [settings, address] of [
      [{ HOST: '0.0.0.0' }, '127.0.0.1'],
      [{ HOST: '127.0.0.1', MONITORING_HOST: '0.0.0.0' }, '0.0.0.0'],
    ] as const) {
      const config = testConfig('postgres://u:p@localhost:5432/x', settings);
      const server = await listenForMetrics(config, 'api', new Registry());
      expect((server.address() as AddressInfo).address).toBe(address);
      server.close();
    }
  });

  it('picks another port while the default one is in use, except in production', async () => {
    const url = 'postgres://u:p@localhost:5432/x';
    const config = testConfig(url, { METRICS_PORT: '' });
    const first = await listenForMetrics(config, 'api', new Registry());
    const second = await listenForMetrics(config, 'api', new Registry());
    expect(getPort(second)).not.toBe(getPort(first));
    expect([getPort(first), getPort(second)]).not.toContain(0);
    const production = { ...config, isProduction: true };
    await expect(listenForMetrics(production, 'api', new Registry())).rejects.toThrow(
      /^METRICS_PORT: cannot listen on port 9464 .*EADDRINUSE/,
    );
    first.close();
    second.close();
  });

  it('rejects a METRICS_PORT that is in use and says to choose another one', async () => {
    const occupiedPort = createServer().listen(0, '127.0.0.1');
    await once(occupiedPort, 'listening');
    const { port } = occupiedPort.address() as AddressInfo;
    const config = testConfig('postgres://u:p@localhost:5432/x', { METRICS_PORT: `${port}` });
    await expect(listenForMetrics(config, 'api', new Registry())).rejects.toThrow(
      new RegExp(`^METRICS_PORT: cannot listen on port ${port} .*EADDRINUSE.*; choose another one`),
    );
    occupiedPort.close();
  });
});
