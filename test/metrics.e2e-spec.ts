import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { listenForMetrics } from '#operations/metrics-listener.js';
import { getPort } from '#operations/operator-server.js';
import { testConfig } from './support/database/database.js';
import { eventually } from './support/jest/eventually.js';
import { samples, type Samples } from './support/services/metrics.js';
import { startService, type Client, type LocalService } from './support/services/service.js';

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

  it('count requests by method, pattern of the route and class of the status', async () => {
    await till.get(`${till.store}/customers/4711`);
    await till.get(`${till.store}/customers/4712`);
    await till.get('/api/v1/nothing/at/all');
    const now = await eventually(read, (all) =>
      all.has('inkpad_http_request_seconds_count', { route: 'none' }),
    );
    expect(
      now.value('inkpad_http_request_seconds_count', {
        method: 'GET',
        route: '/api/v1/accounts/:account_id/customers/:id',
        status: '4xx',
      }),
    ).toBe(2);
    expect(
      now.value('inkpad_http_request_seconds_count', {
        method: 'GET',
        route: 'none',
        status: '4xx',
      }),
    ).toBe(1);
    expect(now.value('inkpad_http_requests_in_flight')).toBe(0);
    // Among the values a time may have these digits too.
    expect(now.text.replaceAll(/^(\w+(?:\{.*\})?) \S+$/gm, '$1')).not.toContain('471');
    expect(now.text).not.toContain('nothing');
  });

  it('count a request whose connection broke as one without an answer', async () => {
    const { port, hostname } = new URL(service.baseUrl);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(
      `POST ${till.store}/cards HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${till.token}\r\n`,
    );
    socket.write('Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
    await eventually(read, (all) => all.value('inkpad_http_requests_in_flight') === 1);
    socket.destroy();
    const now = await eventually(read, (all) => all.value('inkpad_http_requests_in_flight') === 0);
    expect(
      now.value('inkpad_http_request_seconds_count', {
        method: 'POST',
        route: '/api/v1/accounts/:account_id/cards',
        status: 'none',
      }),
    ).toBe(1);
  });

  it('count commits, what waited before them, and answers given again', async () => {
    const before = await read();
    const key = { 'idempotency-key': randomUUID() };
    const make = () => till.send('POST', `${till.store}/cards`, { card: { name: 'Tea' } }, key);
    await make();
    await make();
    const now = await read();
    const grown = (name: string, labels = {}) =>
      (now.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
    expect(grown('inkpad_commit_seconds_count', { result: 'committed' })).toBe(1);
    expect(grown('inkpad_command_wait_seconds_count')).toBe(1);
    expect(grown('inkpad_events_committed_total')).toBeGreaterThanOrEqual(1);
    expect(grown('inkpad_idempotent_replays_total')).toBe(1);
  });

  it('count rate-limited requests', async () => {
    for (let i = 0; i < 3; i++) await fetch(`${service.baseUrl}/docs`);
    const now = await read();
    expect(now.value('inkpad_http_rate_limited_total', { by: 'page_address' })).toBe(1);
  });

  it('show the pool and what can be reached', async () => {
    const now = await read();
    expect(now.value('inkpad_database_connections', { state: 'idle' })).toBeGreaterThan(0);
    expect(now.value('inkpad_database_connections', { state: 'busy' })).toBe(0);
    expect(now.value('inkpad_database_connections_max')).toBe(10);
    expect(now.value('inkpad_database_waiting')).toBe(0);
    for (const part of ['database', 'event_store', 'migrations']) {
      expect(now.value('inkpad_reachable', { part })).toBe(1);
    }
    expect(now.value('inkpad_ready')).toBe(1);
  });

  it('contain no store, customer or subscription', async () => {
    const { text } = await read();
    const labels = new Set([...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label));
    expect([...labels].sort()).toEqual([
      'by',
      'le',
      'method',
      'part',
      'result',
      'route',
      'state',
      'status',
    ]);
  });
});

describe('the port of metrics', () => {
  it('shows them, and nothing else', async () => {
    const config = testConfig('postgres://u:p@localhost:5432/x', { METRICS_PORT: '0' });
    const server = await listenForMetrics(config, 'dispatcher', new Registry());
    const at = `http://127.0.0.1:${getPort(server)}`;
    const answer = await fetch(`${at}/metrics`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    const metrics = samples(await answer.text());
    expect(metrics.has('inkpad_build_info', { process: 'dispatcher' })).toBe(true);
    expect(metrics.has('nodejs_eventloop_lag_p99_seconds')).toBe(true);
    expect(metrics.has('process_resident_memory_bytes')).toBe(true);
    expect((await fetch(`${at}/`)).status).toBe(404);
    server.closeAllConnections();
    server.close();
  });

  it('listens on localhost, unless the settings say otherwise', async () => {
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

  it('is another one while the default is in use, outside of production', async () => {
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

  it('reports a port that is in use, with what to do', async () => {
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
