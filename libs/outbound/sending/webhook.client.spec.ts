import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createHmac, createPublicKey, randomBytes, verify } from 'node:crypto';
import http from 'node:http';
import { networkInterfaces } from 'node:os';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { readConfig } from '#configuration/config.js';
import { eventually } from '../../../test/support/jest/eventually.js';
import { NameServer, type Zone } from '../../../test/support/emulators/name-server.js';
import { OutdatedError } from './http-response.js';
import { alternateFamilies } from './guarded-agent.client.js';
import { findInHosts, NameLookup } from './name-lookup.client.js';
import { createSigningSecret } from './webhook-signature.js';
import { WebhookClient, type Attempt } from './webhook.client.js';

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const OLD_SECRET = `whsec_${Buffer.alloc(32, 6).toString('base64')}`;
const METADATA = '169.254.169.254';
const LOOPBACK = '127.0.0.1';
const CLOSED = 'The connection was closed before a response arrived';

let server: http.Server;
let port: number;
let requests: { headers: http.IncomingHttpHeaders; body: string; from: string }[];
let connections: number;
let respond: (response: http.ServerResponse) => void;
const cleanUps: (() => Promise<void>)[] = [];

beforeEach(async () => {
  requests = [];
  connections = 0;
  respond = (response) => response.end('thanks');
  server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const from = `${request.socket.localAddress}`;
      requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString(), from });
      respond(response);
    });
  });
  server.on('connection', () => connections++);
  // All of 127.0.0.0/8 leads here, so that a name can have several addresses.
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  jest.restoreAllMocks();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function createClient(
  names = new NameLookup(),
  environment: NodeJS.ProcessEnv = {},
): WebhookClient {
  const config = readConfig({
    DATABASE_URL: 'postgres://nowhere/none',
    MASTER_KEY: Buffer.alloc(32).toString('base64'),
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    ...environment,
  });
  const client = new WebhookClient(config, names);
  cleanUps.push(() => client.onApplicationShutdown());
  return client;
}

async function startNameServer(zone: Zone): Promise<NameServer> {
  const names = await NameServer.start(zone);
  cleanUps.push(() => names.stop());
  return names;
}

/** Starts a server that responds with arbitrary bytes. */
async function startRawServer(serve: (socket: Socket, nth: number) => void): Promise<number> {
  let nth = 0;
  const sockets = new Set<Socket>();
  const raw: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', () => serve(socket, ++nth));
  });
  await new Promise<void>((resolve) => raw.listen(0, LOOPBACK, resolve));
  cleanUps.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => raw.close(resolve));
  });
  return (raw.address() as AddressInfo).port;
}

function send({
  host = LOOPBACK,
  at = port,
  client = createClient(),
  ...attempt
}: { host?: string; at?: number; client?: WebhookClient } & Partial<Attempt> = {}) {
  return client.send({
    url: `http://${host}:${at}/hooks`,
    secret: SECRET,
    eventId: 'evt_1',
    type: 'stamp.earned',
    body: Buffer.from('{"é":1}'),
    ...attempt,
  });
}

/** Sends and waits, because the client counts a connection as idle only a moment after the response has ended. */
async function sendAndSettle(options: Parameters<typeof send>[0]): ReturnType<typeof send> {
  const result = await send(options);
  await immediate();
  return result;
}

describe('an attempt', () => {
  it('sends nothing when mayBeSent turns false before the first byte is written', async () => {
    const client = createClient();
    let isCurrent = true;
    const connecting = send({ client, mayBeSent: () => isCurrent });
    isCurrent = false;
    await expect(connecting).rejects.toThrow(OutdatedError);
    await sendAndSettle({ client, mayBeSent: () => true });
    const onTheSameConnection = send({ client, mayBeSent: () => false });
    await expect(onTheSameConnection).rejects.toThrow(OutdatedError);
    await sendAndSettle({ client });
    expect(requests).toHaveLength(2);
  });

  it('is signed as Standard Webhooks specifies', async () => {
    const { outcome, excerpt, at } = await send();
    expect(outcome).toEqual({ kind: 'responded', status: 200, retryAfter: null });
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
    expect((await send()).outcome).toMatchObject({ kind: 'responded', status: 302 });
    expect(requests).toHaveLength(1);
  });

  it('returns the Retry-After of the response', async () => {
    respond = (response) => response.writeHead(429, { 'retry-after': '7' }).end();
    expect((await send()).outcome).toEqual({ kind: 'responded', status: 429, retryAfter: '7' });
  });

  it('has no negative duration when the clock is set back', async () => {
    const anHourAgo = Date.now() - 3_600_000;
    respond = (response) => {
      jest.spyOn(Date, 'now').mockReturnValue(anHourAgo);
      response.end();
    };
    expect((await send()).durationMs).toBeGreaterThanOrEqual(0);
  });

  it('returns at most 1 KiB of a long response, without NUL characters', async () => {
    respond = (response) => {
      response.write(Buffer.alloc(700, 0));
      response.write(Buffer.alloc(1_000_000, 0xff));
    };
    const { outcome, excerpt } = await send();
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1024);
    expect(excerpt).not.toContain('\0');
  });

  it('closes the connection early when the response is longer than 64 KiB', async () => {
    const MIB = 1024 * 1024;
    const chunk = Buffer.alloc(MIB, 'x');
    let isClosed = false;
    let writtenBytes = 0;
    const at = await startRawServer((socket) => {
      const write = () => {
        // Begun once, and then as fast as it is taken.
        while (!socket.destroyed && writtenBytes < 64 * MIB) {
          writtenBytes += MIB;
          if (!socket.write(chunk)) return;
        }
      };
      socket.on('close', () => (isClosed = true));
      socket.on('drain', write);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${64 * MIB}\r\n\r\n`);
      write();
    });
    const { outcome, excerpt } = await send({ at });
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(excerpt).toBe('x'.repeat(1024));
    await eventually(
      () => isClosed,
      (is) => is,
    );
    // What was on its way is more than 64 KiB, and far less than all.
    expect(writtenBytes).toBeLessThan(32 * MIB);
  });

  it('waits for the end of a response of less than 64 KiB', async () => {
    let finish: () => void = () => undefined;
    respond = (response) => {
      response.write(Buffer.alloc(60 * 1024, 'x'));
      finish = () => response.end();
    };
    let over = false;
    const pending = send().then((result) => {
      over = true;
      return result;
    });
    await eventually(
      () => requests.length,
      (count) => count === 1,
    );
    expect(over).toBe(false);
    finish();
    expect((await pending).outcome).toMatchObject({ status: 200 });
  });

  it('reports a connection that is closed without a response', async () => {
    respond = (response) => response.socket?.destroy();
    expect((await send()).outcome).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: 'The connection was closed before a response arrived',
    });
  });

  it('is signed with both secrets during a rotation', async () => {
    const { at } = await send({ previousSecret: OLD_SECRET });
    const signedText = `evt_1.${Math.floor(at.getTime() / 1000)}.{"é":1}`;
    const signature = (byte: number) =>
      `v1,${createHmac('sha256', Buffer.alloc(32, byte)).update(signedText).digest('base64')}`;
    expect(requests[0]?.headers['webhook-signature']).toBe(`${signature(5)} ${signature(6)}`);
  });

  it('is signed with a private key and the secret that it has replaced', async () => {
    const { secret, publicKey } = createSigningSecret('ed25519', Buffer.alloc(32, 9));
    const { at } = await send({ secret, previousSecret: OLD_SECRET });
    const signedText = `evt_1.${Math.floor(at.getTime() / 1000)}.{"é":1}`;
    const [first = '', second] = `${requests[0]?.headers['webhook-signature']}`.split(' ');
    const x = Buffer.from(publicKey?.slice('whpk_'.length) ?? '', 'base64').toString('base64url');
    const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
    const signature = Buffer.from(first.replace(/^v1a,/, ''), 'base64');
    expect(verify(null, Buffer.from(signedText), key, signature)).toBe(true);
    const old = createHmac('sha256', Buffer.alloc(32, 6)).update(signedText).digest('base64');
    expect(second).toBe(`v1,${old}`);
  });

  it('has the headers of the store, whose values the excerpt hides', async () => {
    respond = (response) =>
      response.end(JSON.stringify({ headers: requests.at(-1)?.headers, filler: 'x'.repeat(2000) }));
    const headers = { 'X-Api-Key': 'k3y-of-the-till', Authorization: 'Bearer abcdef-123456' };
    const { excerpt } = await send({ headers });
    expect(requests[0]?.headers).toMatchObject({
      'x-api-key': 'k3y-of-the-till',
      authorization: 'Bearer abcdef-123456',
      'content-type': 'application/json',
      'webhook-id': 'evt_1',
    });
    expect(excerpt).toContain('"x-api-key":"•••"');
    expect(excerpt).not.toMatch(/k3y-of|abcdef/);
    expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1024);
  });

  const SECRET = 'k3y-of-the-till';
  it.each([
    ['whose connection is reset', 'content-length: 900', (text: string) => text],
    ['that lacks its last chunk', 'transfer-encoding: chunked', toChunk],
    ['of no declared length', 'x: y', (text: string) => text],
    ['in gzip without its end', 'content-encoding: gzip\r\ncontent-length: 900', toCutGzip],
  ])('shows no byte of a secret at the end of a body %s', async (_what, head, toBody) => {
    const client = createClient();
    for (let length = 1; length <= SECRET.length; length++) {
      respond = ({ socket }) => {
        socket?.write(`HTTP/1.1 500 Oops\r\n${head}\r\n\r\n`);
        socket?.end(toBody(`x-api-key: ${SECRET.slice(0, length)}`));
      };
      const { outcome, excerpt } = await send({ client, headers: { 'X-Api-Key': SECRET } });
      expect(outcome).toMatchObject({ kind: 'responded', status: 500 });
      expect(excerpt).toBe('x-api-key: •••');
    }
  });

  it('shows the end of a body that is whole, whatever it ends with', async () => {
    respond = (response) => response.end('ok');
    const headers = { 'X-Api-Key': SECRET };
    expect((await send({ headers })).excerpt).toBe('ok');
  });

  it('sends no Accept-Encoding, and no cookies of an earlier response', async () => {
    respond = (response) => response.writeHead(200, { 'set-cookie': 'a=1; Path=/' }).end();
    const client = createClient();
    await send({ client });
    await send({ client });
    expect(requests[1]?.headers).not.toHaveProperty('cookie');
    expect(requests[1]?.headers).not.toHaveProperty('accept-encoding');
  });

  it.each([
    ['gzip', gzipSync],
    ['X-GZIP', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
  ])('returns the decoded excerpt of a response in %s', async (encoding, encode) => {
    const client = createClient();
    for (const text of ['Käse fehlt', 'y'.repeat(1023), '']) {
      respond = (response) =>
        response.writeHead(500, { 'content-encoding': encoding }).end(encode(text));
      expect((await send({ client })).excerpt).toBe(text === '' ? null : text);
    }
  });

  it('decodes only the beginning of a compressed response', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 'z'));
    respond = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    const { outcome, excerpt } = await send();
    expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    expect(excerpt).toBe('z'.repeat(1024));
    const noise = gzipSync(randomBytes(60_000).toString('hex'));
    respond = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(noise);
    expect((await send()).excerpt).toMatch(/^[0-9a-f]{1024}$/);
  });

  it.each([
    ['gzip', Buffer.from('plain after all'), 'plain after all'],
    ['deflate', Buffer.from('plain after all'), 'plain after all'],
    ['gzip', gzipSync('cut off in the middle of it').subarray(0, -9), /^cut off in the middl/],
    ['br', Buffer.from('as it came'), 'as it came'],
    ['gzip, gzip', Buffer.from('as it came'), 'as it came'],
    ['identity', Buffer.from('as it came'), 'as it came'],
  ])(
    'returns what it can read of a response with Content-Encoding %s: %s',
    async (encoding, body, excerpt) => {
      respond = (response) => response.writeHead(200, { 'content-encoding': encoding }).end(body);
      const result = await send();
      expect(result.outcome).toMatchObject({ kind: 'responded', status: 200 });
      expect(result.excerpt).toMatch(excerpt);
    },
  );

  it('survives a gzip response with a broken byte, wherever it is', async () => {
    const client = createClient();
    const whole = gzipSync('a text that is encoded, and repeated, and repeated, and repeated');
    for (let at = 0; at < whole.length; at += 3) {
      const brokenBytes = Buffer.from(whole);
      brokenBytes[at] = (brokenBytes[at] ?? 0) ^ 0xff;
      respond = (response) =>
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(brokenBytes);
      const { outcome, excerpt } = await send({ client });
      expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
      expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1024);
    }
  });

  it('uses no proxy that the environment names', async () => {
    const before = process.env;
    process.env = { ...before, HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' };
    try {
      expect((await send()).outcome).toMatchObject({ kind: 'responded', status: 200 });
    } finally {
      process.env = before;
    }
  });

  it('fails for an event type that would inject a header', async () => {
    const { outcome } = await send({ type: 'stamp.earned\r\nx-admin: 1' });
    expect(outcome).toMatchObject({ kind: 'failed' });
    expect(requests).toHaveLength(0);
  });

  it('fails for an invalid secret without revealing it', async () => {
    const { outcome } = await send({ secret: 'whsec_not base64 at all' });
    expect(outcome).toMatchObject({ kind: 'failed' });
    expect(JSON.stringify(outcome)).not.toContain('not base64');
  });

  it.each([
    ['a response in many small pieces', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', 200],
    [
      'interim responses before the final one',
      'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No\r\n\r\n',
      204,
    ],
    ['an unassigned status', 'HTTP/1.1 299 Odd\r\ncontent-length: 0\r\n\r\n', 299],
    ['a body that ends early', 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf', 200],
  ])('accepts %s', async (_what, responseText, status) => {
    const at = await startRawServer((socket) => {
      for (const letter of responseText) socket.write(letter);
      socket.end();
    });
    expect((await send({ at })).outcome).toMatchObject({ kind: 'responded', status });
  });

  it.each([
    ['something that is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'The response was not valid HTTP'],
    ['an invalid status', 'HTTP/1.1 2x0 OK\r\n\r\n', 'The response was not valid HTTP'],
    ['incomplete headers', 'HTTP/1.1 200 OK\r\ncontent-', CLOSED],
    [
      'a switch of protocols',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
      'The response was not valid HTTP',
    ],
    [
      'endless headers',
      `HTTP/1.1 200 OK\r\n${'x-filler: y\r\n'.repeat(10_000)}`,
      'The response headers were too large',
    ],
  ])('fails on %s', async (_what, responseText, error) => {
    const at = await startRawServer((socket) => socket.end(responseText));
    const cause = error === CLOSED ? 'connection' : 'protocol';
    expect((await send({ at })).outcome).toEqual({ kind: 'failed', cause, error });
  });

  it('accepts a response that arrives before the receiver has read the body', async () => {
    server.removeAllListeners('request');
    server.on('request', (_request, response: http.ServerResponse) =>
      response.writeHead(413, { connection: 'close' }).end('too much'),
    );
    const { outcome } = await send({ body: Buffer.alloc(100_000, 'x') });
    expect(outcome).toMatchObject({ kind: 'responded', status: 413 });
  });

  it('reports a refused connection without its address', async () => {
    const { outcome } = await send({ at: 1 });
    expect(outcome).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: 'The connection was refused',
    });
  });
});

describe('a connection', () => {
  it('is reused', async () => {
    const client = createClient();
    for (let i = 0; i < 3; i++) await sendAndSettle({ client });
    expect(requests).toHaveLength(3);
    expect(connections).toBe(1);
  });

  it('is replaced at once when it dies on reuse', async () => {
    const at = await startRawServer((socket, nth) => {
      if (nth === 2) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const client = createClient();
    await sendAndSettle({ client, at });
    expect((await send({ client, at })).outcome).toMatchObject({ status: 200 });
  });

  it('is not replaced when it dies in the middle of a response', async () => {
    let requestCount = 0;
    const at = await startRawServer((socket, nth) => {
      requestCount = nth;
      if (nth === 2) socket.end('HTTP/1.1 2');
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const client = createClient();
    await sendAndSettle({ client, at });
    expect((await send({ client, at })).outcome).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: CLOSED,
    });
    expect(requestCount).toBe(2);
  });

  it('is not replaced when it dies on its first request', async () => {
    let requestCount = 0;
    const at = await startRawServer((socket, nth) => {
      requestCount = nth;
      socket.destroy();
    });
    expect((await send({ at })).outcome).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: CLOSED,
    });
    expect(requestCount).toBe(1);
  });

  it('is not reused after a minute, so that a name can move to another address', async () => {
    const names = await startNameServer(({ nth }) => ({ addresses: [`127.0.0.${nth}`] }));
    const client = createClient(names.lookup());
    const sendAgain = () => sendAndSettle({ client, host: 'moves.example' });
    await sendAgain();
    await sendAgain();
    expect(requests.map(({ from }) => from)).toEqual(['127.0.0.1', '127.0.0.1']);
    const [wall, steady] = [Date.now(), performance.now()];
    jest.spyOn(Date, 'now').mockReturnValue(wall + 61_000);
    jest.spyOn(performance, 'now').mockReturnValue(steady + 61_000);
    await sendAgain();
    expect(requests.at(-1)?.from).toBe('127.0.0.2');
  });
});

describe('a host name', () => {
  it('is cached for as long as its TTL', async () => {
    const names = await startNameServer(({ name }) => ({
      addresses: [LOOPBACK],
      ttl: name === 'lasting.example' ? 3600 : 0,
    }));
    const lookup = names.lookup();
    for (const name of ['lasting.example', 'LASTING.example.', 'brief.example', 'brief.example']) {
      expect(await lookup.resolve(name)).toEqual({
        addresses: [{ address: LOOPBACK, family: 4 }],
        isComplete: true,
      });
    }
    expect(names.queriedNames.filter((query) => query === 'A lasting.example')).toHaveLength(1);
    await waitForSecondQuery(lookup, names);
  });

  it('is looked up once for many attempts at the same time', async () => {
    const names = await startNameServer(() => ({ addresses: [LOOPBACK] }));
    const client = createClient(names.lookup());
    const all = Array.from({ length: 20 }, () => send({ client, host: 'busy.example' }));
    for (const { outcome } of await Promise.all(all))
      expect(outcome).toMatchObject({ status: 200 });
    expect(names.queriedNames.filter((query) => query === 'A busy.example')).toHaveLength(1);
  });

  it.each(['nxdomain', 'servfail'] as const)(
    'fails the attempt when its lookup ends in %s',
    async (reply) => {
      const names = await startNameServer(() => reply);
      const { outcome } = await send({ host: 'no.example', client: createClient(names.lookup()) });
      expect(outcome).toEqual({
        kind: 'failed',
        cause: 'dns',
        error: 'The name of the URL could not be resolved',
      });
    },
  );

  it('fails the attempt when it has no addresses', async () => {
    const names = await startNameServer(() => ({ addresses: [] }));
    const { outcome } = await send({ host: 'empty.example', client: createClient(names.lookup()) });
    expect(outcome).toMatchObject({ kind: 'failed' });
  });

  it('does not delay attempts to others when its name servers are silent', async () => {
    const names = await startNameServer(({ name }) =>
      name.startsWith('dead') ? 'silence' : { addresses: [LOOPBACK] },
    );
    const client = createClient(names.lookup());
    const order: string[] = [];
    const to = async (host: string) => {
      const { outcome } = await send({ client, host });
      order.push(`${host} ${outcome.kind}`);
    };
    const dead = Array.from({ length: 8 }, (_, i) => to(`dead${i}.example`));
    await to('live.example');
    expect(order).toEqual(['live.example responded']);
    await Promise.all(dead);
    expect(order).toContain('dead7.example failed');
  });

  it('is found in the hosts file, but not in its comments', () => {
    const file =
      '127.0.0.1 localhost\n# 10.0.0.1 a.example\n10.0.0.2\tB.example a.example # a\nx a.example';
    expect(findInHosts(file, 'a.example')).toEqual([{ address: '10.0.0.2', family: 4 }]);
    expect(findInHosts(file, 'c.example')).toEqual([]);
  });
});

describe('a blocked address', () => {
  const strict = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'false' };

  it('is refused as a literal, without a lookup', async () => {
    const names = await startNameServer(() => ({ addresses: [LOOPBACK] }));
    const client = createClient(names.lookup(), strict);
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]', 'localhost']) {
      for (const protocol of ['http', 'https']) {
        const { outcome } = await send({ client, url: `${protocol}://${host}:${port}/` });
        expect(outcome).toEqual({ kind: 'blocked' });
      }
    }
    expect(names.queriedNames).toHaveLength(0);
    expect(connections).toBe(0);
  });

  it('is refused when a name has no other addresses', async () => {
    const names = await startNameServer(() => ({
      addresses: [METADATA, `::ffff:${METADATA}`, 'fd00:ec2::254'],
    }));
    const client = createClient(names.lookup());
    expect((await send({ client, host: 'evil.example' })).outcome).toEqual({ kind: 'blocked' });
    expect(connections).toBe(0);
  });

  it('fails the attempt without blocking it when half of the lookup has failed', async () => {
    const names = await startNameServer(({ type }) =>
      type === 'A' ? { addresses: [METADATA] } : 'servfail',
    );
    const client = createClient(names.lookup());
    expect((await send({ client, host: 'half.example' })).outcome).toMatchObject({
      kind: 'failed',
    });
    expect(connections).toBe(0);
  });

  it('is left out when a name has other addresses too', async () => {
    const names = await startNameServer(() => ({ addresses: [METADATA, LOOPBACK, 'fe80::1'] }));
    const client = createClient(names.lookup());
    const { outcome } = await send({ client, host: 'mixed.example' });
    expect(outcome).toMatchObject({ status: 200 });
    expect(names.queriedNames.toSorted()).toEqual(['A mixed.example', 'AAAA mixed.example']);
    expect(requests[0]?.headers.host).toBe(`mixed.example:${port}`);
  });

  it('is refused when a name leads to it only after the name was checked', async () => {
    const names = await startNameServer(({ nth }) => ({
      addresses: [nth === 1 ? '8.8.8.8' : LOOPBACK],
    }));
    const lookup = names.lookup();
    expect(await lookup.resolveWithin('rebinds.example', 5_000)).toEqual(['8.8.8.8']);
    const client = createClient(lookup, strict);
    await expectBlocked(() => send({ client, url: `https://rebinds.example:${port}/` }));
    expect(connections).toBe(0);
  });

  it('is refused on this machine, whatever the operator allows', async () => {
    const names = await startNameServer(() => ({ addresses: [LOOPBACK, '::1', '::ffff:7f00:1'] }));
    const environment = { ...strict, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::/0' };
    const client = createClient(names.lookup(), environment);
    await expectBlocked(() => send({ client, url: `https://in.example:${port}/` }));
    await expectBlocked(() => send({ client, url: `https://127.0.0.1:${port}/` }));
    expect(connections).toBe(0);
  });

  it('is reached over https only when the operator allows it', async () => {
    const names = await startNameServer(() => ({ addresses: [findOwnAddress()] }));
    const environment = { ...strict, WEBHOOK_ALLOWED_CIDRS: `${findOwnAddress()}/32` };
    const client = createClient(names.lookup(), environment);
    const over = (protocol: string) => send({ client, url: `${protocol}://in.example:${port}/` });
    expect((await over('https')).outcome).toEqual({
      kind: 'failed',
      cause: 'tls',
      error: 'The receiver does not speak TLS',
    });
    expect(connections).toBe(1);
    expect((await over('http')).outcome).toEqual({ kind: 'blocked' });
  });
});

describe('a name with several addresses', () => {
  it('is tried at one after the other', async () => {
    const at = await startRawServer((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    // Nothing listens on the other two.
    const names = await startNameServer(() => ({
      addresses: ['127.0.0.2', '127.0.0.3', LOOPBACK],
    }));
    const { outcome } = await send({
      at,
      host: 'many.example',
      client: createClient(names.lookup()),
    });
    expect(outcome).toMatchObject({ status: 204 });
  });

  it('is tried at IPv4 and IPv6 addresses alternately', () => {
    const four = (n: number) => ({ address: `10.0.0.${n}`, family: 4 });
    const six = { address: 'fd12::1', family: 6 };
    expect(alternateFamilies([four(1), four(2), four(3), six])).toEqual([
      four(1),
      six,
      four(2),
      four(3),
    ]);
    expect(alternateFamilies([six])).toEqual([six]);
    expect(alternateFamilies([])).toEqual([]);
  });

  it('is not tried at the fifth', async () => {
    const at = await startRawServer((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    const closedAddresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    const names = await startNameServer(() => ({ addresses: [...closedAddresses, LOOPBACK] }));
    const { outcome } = await send({
      at,
      host: 'many.example',
      client: createClient(names.lookup()),
    });
    expect(outcome).toEqual({
      kind: 'failed',
      cause: 'connection',
      error: 'The connection was refused',
    });
  });
});

/** Finds an address of this machine that is not loopback. */
function findOwnAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = all.find(({ internal, family }) => !internal && family === 'IPv4');
  if (!own) throw new Error('this machine has no IPv4 address but loopback');
  return own.address;
}

/** Waits for a second query: a name with a TTL of 0 is cached for a millisecond. */
async function waitForSecondQuery(lookup: NameLookup, names: NameServer): Promise<void> {
  await eventually(
    async () => {
      await lookup.resolve('brief.example');
      return names.queriedNames.filter((query) => query === 'A brief.example').length;
    },
    (count) => count > 1,
  );
}

async function expectBlocked(attempt: () => ReturnType<typeof send>): Promise<void> {
  const { outcome } = await eventually(attempt, ({ outcome: { kind } }) => kind === 'blocked');
  expect(outcome).toEqual({ kind: 'blocked' });
}

function toChunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

/** Compresses a text in two pieces, of which the second never comes. */
function toCutGzip(text: string): Buffer {
  return gzipSync(text, { finishFlush: constants.Z_SYNC_FLUSH });
}
