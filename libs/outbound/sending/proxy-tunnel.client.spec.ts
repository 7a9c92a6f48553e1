import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { readConfig } from '#configuration/config.js';
import { ConnectProxy } from '../../../test/support/emulators/connect-proxy.js';
import { NameServer, type Zone } from '../../../test/support/emulators/name-server.js';
import { WebhookClient } from './webhook.client.js';

/** A public address: only the proxy leads to the receiver. */
const PUBLIC = '93.184.215.14';
const OTHER_PUBLIC = '93.184.215.15';

let proxy: ConnectProxy;
let receiver: http.Server;
let port: number;
let requests: http.IncomingHttpHeaders[];
const cleanUps: (() => Promise<void>)[] = [];

beforeEach(async () => {
  requests = [];
  proxy = await ConnectProxy.start();
  cleanUps.push(() => proxy.stop());
  receiver = http.createServer((request, response) => {
    requests.push(request.headers);
    request.resume().on('end', () => response.end('thanks'));
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  ({ port } = receiver.address() as AddressInfo);
});

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
});

async function createClient(zone: Zone, environment: NodeJS.ProcessEnv = {}) {
  const names = await NameServer.start(zone);
  const config = readConfig({
    DATABASE_URL: 'postgres://nowhere/none',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    OUTBOUND_PROXY_URL: `http://127.0.0.1:${proxy.port}`,
    ...environment,
  });
  const client = new WebhookClient(config, names.lookup());
  cleanUps.push(
    () => client.onApplicationShutdown(),
    () => names.stop(),
  );
  return { client, names };
}

const leadsTo =
  (...addresses: string[]): Zone =>
  () => ({ addresses });

async function send(
  { client }: { client: WebhookClient },
  url = `http://receiver.example:${port}/hooks`,
) {
  const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
  const body = Buffer.from('{}');
  const result = await client.send({ url, secret, eventId: 'evt_1', type: 'stamp.earned', body });
  return result.outcome;
}

describe('an outgoing proxy', () => {
  it('gets the address that was checked, and the receiver its own name', async () => {
    const outcome = await send(await createClient(leadsTo(PUBLIC)));
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(proxy.requests).toEqual([{ authority: `${PUBLIC}:${port}`, authorization: undefined }]);
    expect(requests[0]?.host).toBe(`receiver.example:${port}`);
  });

  it('gets an IPv6 address in brackets', async () => {
    await send(await createClient(leadsTo('2606:2800:21f:cb07::1')));
    expect(proxy.requests[0]?.authority).toBe(`[2606:2800:21f:cb07::1]:${port}`);
  });

  it('gets its name and password, which no error shows', async () => {
    const login = `http://till:s%C3%A9same@127.0.0.1:${proxy.port}`;
    const setup = await createClient(leadsTo(PUBLIC), { OUTBOUND_PROXY_URL: login });
    await send(setup);
    const expected = `Basic ${Buffer.from('till:sésame').toString('base64')}`;
    expect(proxy.requests[0]?.authorization).toBe(expected);
    proxy.decide = () => 407;
    const refused = await send(setup, `http://other.example:${port}/`);
    expect(refused).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: 'The outgoing proxy refused the connection',
    });
  });

  it('keeps its tunnel for the next request', async () => {
    const setup = await createClient(leadsTo(PUBLIC));
    for (let i = 0; i < 3; i++) {
      await send(setup);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(requests).toHaveLength(3);
    expect(proxy.requests).toHaveLength(1);
  });

  it('carries TLS', async () => {
    const setup = await createClient(leadsTo(PUBLIC));
    const outcome = await send(setup, `https://receiver.example:${port}/`);
    expect(outcome).toEqual({
      kind: 'failed',
      cause: 'tls',
      error: 'The receiver does not speak TLS',
    });
    expect(proxy.requests).toHaveLength(1);
  });

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a metadata service', ['169.254.169.254']],
    ['an IPv6 address of this network', ['fd12::1', '::ffff:10.0.0.1']],
  ])('is not asked for a name that leads to %s', async (_case, addresses) => {
    expect(await send(await createClient(leadsTo(...addresses)))).toEqual({ kind: 'blocked' });
    expect(proxy.requests).toEqual([]);
  });

  it.each(['http://10.0.0.1/', 'http://169.254.169.254/', 'http://[::ffff:10.0.0.1]/'])(
    'is not asked for %s',
    async (url) => {
      expect(await send(await createClient(leadsTo(PUBLIC)), url)).toEqual({ kind: 'blocked' });
      expect(proxy.requests).toEqual([]);
    },
  );

  it('is not asked for the other addresses of a name', async () => {
    await send(await createClient(leadsTo('10.0.0.1', PUBLIC)));
    expect(proxy.requests.map(({ authority }) => authority)).toEqual([`${PUBLIC}:${port}`]);
  });

  it('is asked for the next address when it does not reach one', async () => {
    proxy.decide = (authority) => (authority.startsWith(OTHER_PUBLIC) ? 200 : 502);
    const outcome = await send(await createClient(leadsTo(PUBLIC, OTHER_PUBLIC)));
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(proxy.requests).toHaveLength(2);
  });

  it.each([
    [403, 'The outgoing proxy refused the connection'],
    [502, 'The host could not be reached'],
    [504, 'The host could not be reached'],
  ])('fails the attempt with %d', async (status, error) => {
    proxy.decide = () => status;
    expect(await send(await createClient(leadsTo(PUBLIC)))).toEqual({
      kind: 'failed',
      cause: 'connection',
      error,
    });
    expect(requests).toEqual([]);
  });

  it('fails the attempt when it does not listen', async () => {
    const environment = { OUTBOUND_PROXY_URL: 'http://127.0.0.1:1' };
    const outcome = await send(await createClient(leadsTo(PUBLIC), environment));
    const error = 'The outgoing proxy could not be reached';
    expect(outcome).toEqual({ kind: 'failed', cause: 'connection', error });
  });

  it('is not used for receivers inside, which the operator allows', async () => {
    const setup = await createClient(leadsTo('127.0.0.1'));
    expect(await send(setup)).toMatchObject({ kind: 'responded', status: 200 });
    expect(await send(setup, `http://127.0.0.1:${port}/`)).toMatchObject({ status: 200 });
    expect(await send(setup, `http://localhost:${port}/`)).toMatchObject({ status: 200 });
    expect(proxy.requests).toEqual([]);
  });

  it('gets names when it resolves them, but no address that is blocked', async () => {
    const setup = await createClient(leadsTo('10.0.0.1'), {
      OUTBOUND_PROXY_RESOLVES_NAMES: 'true',
    });
    expect(await send(setup)).toMatchObject({ kind: 'responded', status: 200 });
    expect(await send(setup, 'http://10.0.0.1/')).toEqual({ kind: 'blocked' });
    expect(proxy.requests.map(({ authority }) => authority)).toEqual([`receiver.example:${port}`]);
    expect(setup.names.queriedNames).toEqual([]);
  });
});
