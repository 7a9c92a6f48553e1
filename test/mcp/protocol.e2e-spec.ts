import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Client as McpClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { CommandBus } from '@nestjs/cqrs';
import { Registry } from 'prom-client';
import { UnknownOutcomeError } from '#platform/kernel/errors.js';
import { eventually } from '../support/jest/eventually.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client;
let client: McpClient;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  client = new McpClient({ name: 'test', version: '1' });
  await client.connect(
    new StreamableHTTPClientTransport(new URL('/mcp', service.baseUrl), {
      requestInit: { headers: { authorization: `Bearer ${store.token}` } },
    }),
  );
});

afterAll(async () => {
  await client.close();
  await service.stop();
});

type ToolResult = { isError?: boolean; content: { text: string }[] };

async function newStamping(stamps = 1) {
  const { customer, customerCard, path } = await enrol(store);
  const args = {
    account_id: store.accountId,
    customer_id: customer.id,
    customer_card_id: customerCard.id,
    stamps,
  };
  const stamp = async (idempotency_key: string) =>
    (await client.callTool({
      name: 'add_stamps',
      arguments: { ...args, idempotency_key },
    })) as ToolResult;
  const readBalance = () => store.readBalance(path);
  return { stamp, readBalance };
}

/** Ends every connection of the service to its database. */
async function breakConnections(): Promise<void> {
  await service.database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`,
  );
}

describe('the MCP server', () => {
  it('counts each call once when connections to the database break and calls are repeated', async () => {
    const { stamp, readBalance } = await newStamping();
    const keys = Array.from({ length: 40 }, () => randomUUID());
    // Without its database, the service refuses to read the token: 503.
    const tryTo = (key: string) => stamp(key).catch(() => ({ isError: true }));
    const calls = keys.map(tryTo);
    await breakConnections();
    await Promise.all(calls);
    for (const key of keys) {
      await eventually(
        () => tryTo(key),
        ({ isError }) => isError !== true,
      );
    }
    expect(await readBalance()).toBe(keys.length);
  });

  it('reports an outcome that is not known, and serves the next call', async () => {
    const { stamp, readBalance } = await newStamping();
    const bus = service.app.get(CommandBus);
    const execute = bus.execute.bind(bus);
    bus.execute = () => Promise.reject(new UnknownOutcomeError('the reply was lost'));
    const { isError, content } = await stamp(randomUUID()).finally(() => (bus.execute = execute));
    expect(isError).toBe(true);
    expect(content[0]?.text).toContain('Repeat it with the same idempotency_key');
    expect((await stamp(randomUUID())).isError).toBeUndefined();
    expect(await readBalance()).toBe(1);
  });

  it('refuses what is no message without an error of its own', async () => {
    const call = (params: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const nest = (levels: number) =>
      JSON.stringify(
        call({
          name: 'create_customer',
          arguments: { account_id: store.accountId, customer: 'deep', idempotency_key: 'deep' },
        }),
      ).replace('"deep"', () => '{"metadata":'.repeat(levels) + '0' + '}'.repeat(levels));
    for (const body of [
      undefined,
      null,
      1,
      'x',
      [],
      [null],
      {},
      { jsonrpc: '1.0' },
      { jsonrpc: '2.0', id: null, method: 'tools/list' },
      { jsonrpc: '2.0', id: 1, method: 'x'.repeat(100_000) },
      { jsonrpc: '2.0', id: 1, result: {} },
      call(null),
      nest(1_000),
      nest(75_000),
      call({ name: '__proto__', arguments: {} }),
      call({ name: 'add_stamps', arguments: { account_id: '__proto__' } }),
      call({ name: 'find_customers', arguments: { account_id: 1, search: '\0\ud800' } }),
    ]) {
      const headers = { accept: 'application/json, text/event-stream' };
      const { status } = await store.send('POST', '/mcp', body, headers);
      expect([body, status < 500]).toEqual([body, true]);
    }
    expect((await client.listTools()).tools.length).toBeGreaterThan(10);
  });

  it('leaves no request in flight', async () => {
    const { stamp } = await newStamping();
    await Promise.all([1, 2, 3].map(() => stamp(randomUUID())));
    const registry = service.app.get(Registry, { strict: false });
    await eventually(
      () => registry.getSingleMetricAsString('inkpad_http_requests_in_flight'),
      (text) => text.endsWith(' 0'),
    );
  });
});
