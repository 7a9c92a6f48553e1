import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { readConfig } from '#configuration/config.js';
import { ConnectProxy } from '../../../test/support/emulators/connect-proxy.js';
import { OutboundTunnels, type FindAddresses } from './outbound-tunnels.client.js';

const PUBLIC = '93.184.215.14';

let proxy: ConnectProxy;
let server: Server;
let port: number;

beforeEach(async () => {
  proxy = await ConnectProxy.start();
  server = createServer((socket) => socket.end('hello'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  await proxy.stop();
  await new Promise((resolve) => server.close(resolve));
});

const leadTo =
  (...addresses: string[]): FindAddresses =>
  () =>
    Promise.resolve(addresses);

const fail: FindAddresses = () => Promise.reject(new Error('getaddrinfo ENOTFOUND'));

function createTunnels(findAddresses: FindAddresses, environment: NodeJS.ProcessEnv = {}) {
  const { outboundProxy } = readConfig({
    DATABASE_URL: 'postgres://nowhere/none',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    OUTBOUND_PROXY_URL: `http://127.0.0.1:${proxy.port}`,
    ...environment,
  });
  return new OutboundTunnels(outboundProxy, findAddresses);
}

async function open(tunnels: OutboundTunnels, host: string): Promise<string | undefined> {
  const socket = await tunnels.open(host, port, 2_000);
  if (socket === undefined) return undefined;
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

describe('a tunnel to a server that the operator has configured', () => {
  it('leads to its name, so that the proxy can allow names', async () => {
    expect(await open(createTunnels(leadTo(PUBLIC)), 'mail.example')).toBe('hello');
    expect(proxy.requests).toMatchObject([{ authority: `mail.example:${port}` }]);
  });

  it('leads to a public address in its URL', async () => {
    expect(await open(createTunnels(fail), PUBLIC)).toBe('hello');
    expect(await open(createTunnels(fail), '[2606:2800:21f:cb07::1]')).toBe('hello');
    const authorities = proxy.requests.map(({ authority }) => authority);
    expect(authorities).toEqual([`${PUBLIC}:${port}`, `[2606:2800:21f:cb07::1]:${port}`]);
  });

  it.each([
    ['a name inside', leadTo('10.0.0.7', 'fd12::7'), 'mail.internal'],
    ['a private address', fail, '192.168.1.7'],
    ['this machine', fail, 'localhost'],
  ])('is not opened to %s', async (_case, findAddresses, host) => {
    expect(await open(createTunnels(findAddresses), host)).toBeUndefined();
    expect(proxy.requests).toEqual([]);
  });

  it.each([
    ['a name', 'mail.example', 'smtp.mail.example', fail],
    ['an address', PUBLIC, PUBLIC, fail],
    ['a range that a name leads to', '93.184.0.0/16', 'mail.example', leadTo(PUBLIC)],
  ])('is not opened to %s in OUTBOUND_NO_PROXY', async (_case, exceptions, host, findAddresses) => {
    const tunnels = createTunnels(findAddresses, { OUTBOUND_NO_PROXY: exceptions });
    expect(await open(tunnels, host)).toBeUndefined();
    expect(proxy.requests).toEqual([]);
  });

  it('needs no lookup when the proxy resolves names', async () => {
    const tunnels = createTunnels(fail, { OUTBOUND_PROXY_RESOLVES_NAMES: 'true' });
    expect(await open(tunnels, 'mail.example')).toBe('hello');
  });

  it('is not opened when the name cannot be looked up', async () => {
    await expect(open(createTunnels(fail), 'mail.example')).rejects.toThrow(/ENOTFOUND/);
    expect(proxy.requests).toEqual([]);
  });

  it('is given up in time when the lookup hangs, or the proxy', async () => {
    const hanging = createTunnels(() => new Promise(() => undefined));
    await expect(hanging.open('mail.example', port, 20)).rejects.toThrow(/not resolved in time/);
    proxy.decide = () => 0;
    const tunnel = createTunnels(leadTo(PUBLIC)).open('mail.example', port, 20);
    await expect(tunnel).rejects.toThrow(/opened no tunnel \(ETIMEDOUT\)/);
  });

  it('fails with the reason, and without the password of the proxy', async () => {
    const tunnels = createTunnels(leadTo(PUBLIC), {
      OUTBOUND_PROXY_URL: `http://till:sesame@127.0.0.1:${proxy.port}`,
    });
    proxy.decide = () => 407;
    const error = await tunnels
      .open('mail.example', port, 2_000)
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/407: check the name and password in OUTBOUND_PROXY_URL/);
    expect(JSON.stringify(error) + String(error)).not.toContain('sesame');
    await proxy.stop();
    await expect(tunnels.open('mail.example', port, 2_000)).rejects.toThrow(/ECONNREFUSED/);
    proxy = await ConnectProxy.start();
  });
});
