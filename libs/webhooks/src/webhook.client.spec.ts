import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHmac } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { readConfig } from '#kernel/config.js';
import { NameLookup } from './name-lookup.client.js';
import { WebhookClient } from './webhook.client.js';

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const METADATA = { address: '169.254.169.254', family: 4 };
const LOOPBACK = { address: '127.0.0.1', family: 4 };

class Names extends NameLookup {
  asked = 0;

  constructor(private readonly found: { address: string; family: number }[]) {
    super();
  }

  override async addressesOf(): Promise<{ address: string; family: number }[]> {
    this.asked++;
    return this.found;
  }
}

let server: http.Server;
let port: number;
let requests: { headers: http.IncomingHttpHeaders; body: string }[];
let respond: (response: http.ServerResponse) => void;
const clients: WebhookClient[] = [];

beforeEach(async () => {
  requests = [];
  respond = (response) => response.end('thanks');
  server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      respond(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.onApplicationShutdown()));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function send({
  host = '127.0.0.1',
  names = new Names([LOOPBACK]),
  allowInsecure = true,
}: { host?: string; names?: NameLookup; allowInsecure?: boolean } = {}) {
  const config = readConfig({
    DATABASE_URL: 'postgres://nowhere/none',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    WEBHOOK_ALLOW_INSECURE_TARGETS: String(allowInsecure),
  });
  const client = new WebhookClient(config, names);
  clients.push(client);
  const url = `http://${host}:${port}/hooks`;
  return client.send({
    url,
    secret: SECRET,
    eventId: 'evt_1',
    type: 'stamp.earned',
    body: '{"é":1}',
  });
}

describe('an attempt', () => {
  it('is signed as Standard Webhooks says', async () => {
    const { outcome, excerpt, at } = await send();
    expect(outcome).toEqual({ kind: 'answered', status: 200, retryAfter: null });
    expect(excerpt).toBe('thanks');
    const [request] = requests;
    const timestamp = String(Math.floor(at.getTime() / 1000));
    const signature = createHmac('sha256', Buffer.alloc(32, 5))
      .update(`evt_1.${timestamp}.{"é":1}`)
      .digest('base64');
    expect(request?.body).toBe('{"é":1}');
    expect(request?.headers).toMatchObject({
      'webhook-id': 'evt_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
      'content-type': 'application/json',
      'service-event': 'stamp.earned',
      'user-agent': expect.stringMatching(/^Inkpad-Webhooks\/\d/),
    });
  });

  it('follows no redirect', async () => {
    respond = (response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${port}/` }).end();
    expect((await send()).outcome).toMatchObject({ kind: 'answered', status: 302 });
    expect(requests).toHaveLength(1);
  });

  it('hands on Retry-After', async () => {
    respond = (response) => response.writeHead(429, { 'retry-after': '7' }).end();
    expect((await send()).outcome).toEqual({ kind: 'answered', status: 429, retryAfter: '7' });
  });

  it('cuts a long answer off and keeps its first KiB, whatever the bytes', async () => {
    respond = (response) => {
      response.write(Buffer.alloc(700, 0));
      response.write(Buffer.alloc(1_000_000, 0xff));
    };
    const { outcome, excerpt } = await send();
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
    expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1024);
    expect(excerpt).not.toContain('\0');
  });

  it('tells of a connection closed without an answer', async () => {
    respond = (response) => response.socket?.destroy();
    expect((await send()).outcome).toEqual({
      kind: 'failed',
      error: 'The connection was closed before an answer came',
    });
  });

  it('tells of a name that does not resolve', async () => {
    class Nowhere extends NameLookup {
      override addressesOf(): Promise<never> {
        return Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));
      }
    }
    expect((await send({ host: 'nowhere.example', names: new Nowhere() })).outcome).toEqual({
      kind: 'failed',
      error: 'The name of the URL could not be resolved',
    });
  });
});

describe('addresses that must not be reached', () => {
  it('refuses a literal, which no resolver ever sees', async () => {
    const names = new Names([LOOPBACK]);
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]', 'localhost']) {
      expect((await send({ host, names, allowInsecure: false })).outcome).toEqual({
        kind: 'blocked',
      });
    }
    expect(names.asked).toBe(0);
    expect(requests).toHaveLength(0);
  });

  it('refuses a name that leads to nothing else', async () => {
    const names = new Names([METADATA, { address: '::ffff:169.254.169.254', family: 6 }]);
    expect((await send({ host: 'evil.example', names })).outcome).toEqual({ kind: 'blocked' });
    expect(requests).toHaveLength(0);
  });

  it('connects to the allowed one where a name leads to both, asking once', async () => {
    const names = new Names([METADATA, LOOPBACK]);
    expect((await send({ host: 'mixed.example', names })).outcome).toMatchObject({ status: 200 });
    expect(names.asked).toBe(1);
    expect(requests[0]?.headers.host).toBe(`mixed.example:${port}`);
  });
});
