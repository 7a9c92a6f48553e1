import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createHmac, randomBytes } from 'node:crypto';
import http from 'node:http';
import { networkInterfaces } from 'node:os';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { readConfig } from '#configuration/config.js';
import { eventually } from '../../../../test/support/jest/eventually.js';
import { NameServer, type Zone } from '../../../../test/support/emulators/name-server.js';
import { OutdatedError } from './response.js';
import { alternateFamilies } from './guarded-agent.client.js';
import { findInHosts, NameLookup } from './name-lookup.client.js';
import { WebhookClient, type Attempt } from './webhook.client.js';

const SECRET = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const OLD_SECRET = `whsec_${Buffer.alloc(32, 6).toString('base64')}`;
const METADATA = '169.254.169.254';
const LOOPBACK = '127.0.0.1';
const CLOSED = 'The connection was closed before an answer came';

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

function newClient(names = new NameLookup(), environment: NodeJS.ProcessEnv = {}): WebhookClient {
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

async function nameServer(zone: Zone): Promise<NameServer> {
  const started = await NameServer.start(zone);
  cleanUps.push(() => started.stop());
  return started;
}

/** A server that answers with arbitrary bytes. */
async function rawServer(serve: (socket: Socket, nth: number) => void): Promise<number> {
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
  client = newClient(),
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

/** Waits, because the client counts a connection as idle only a moment after the answer has ended. */
async function settledSend(options: Parameters<typeof send>[0]): ReturnType<typeof send> {
  const attempted = await send(options);
  await immediate();
  return attempted;
}

describe('an attempt', () => {
  it('sends nothing that goes out of date before its first byte is written', async () => {
    const client = newClient();
    let isCurrent = true;
    const connecting = send({ client, mayBeSent: () => isCurrent });
    isCurrent = false;
    await expect(connecting).rejects.toThrow(OutdatedError);
    await settledSend({ client, mayBeSent: () => true });
    const onTheSameConnection = send({ client, mayBeSent: () => false });
    await expect(onTheSameConnection).rejects.toThrow(OutdatedError);
    await settledSend({ client });
    expect(requests).toHaveLength(2);
  });

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

  it('does not take less than no time when the clock is set back', async () => {
    const anHourAgo = Date.now() - 3_600_000;
    respond = (response) => {
      jest.spyOn(Date, 'now').mockReturnValue(anHourAgo);
      response.end();
    };
    expect((await send()).durationMs).toBeGreaterThanOrEqual(0);
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

  it('closes the connection after 64 KiB, however long the answer is', async () => {
    const MIB = 1024 * 1024;
    const chunk = Buffer.alloc(MIB, 'x');
    let closed = false;
    let written = 0;
    const at = await rawServer((socket) => {
      const write = () => {
        // Begun once, and then as fast as it is taken.
        while (!socket.destroyed && written < 64 * MIB) {
          written += MIB;
          if (!socket.write(chunk)) return;
        }
      };
      socket.on('close', () => (closed = true));
      socket.on('drain', write);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${64 * MIB}\r\n\r\n`);
      write();
    });
    const { outcome, excerpt } = await send({ at });
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
    expect(excerpt).toBe('x'.repeat(1024));
    await eventually(
      () => closed,
      (is) => is,
    );
    // What was on its way is more than 64 KiB, and far less than all.
    expect(written).toBeLessThan(32 * MIB);
  });

  it('waits for the rest of an answer of less than 64 KiB', async () => {
    let finish: () => void = () => undefined;
    respond = (response) => {
      response.write(Buffer.alloc(60 * 1024, 'x'));
      finish = () => response.end();
    };
    let over = false;
    const sent = send().then((attempted) => {
      over = true;
      return attempted;
    });
    await eventually(
      () => requests.length,
      (count) => count === 1,
    );
    expect(over).toBe(false);
    finish();
    expect((await sent).outcome).toMatchObject({ status: 200 });
  });

  it('reports a connection closed without an answer', async () => {
    respond = (response) => response.socket?.destroy();
    expect((await send()).outcome).toEqual({
      kind: 'failed',
      error: 'The connection was closed before an answer came',
    });
  });

  it('is signed with both secrets while one replaces the other', async () => {
    const { at } = await send({ previousSecret: OLD_SECRET });
    const signed = `evt_1.${Math.floor(at.getTime() / 1000)}.{"é":1}`;
    const signature = (byte: number) =>
      `v1,${createHmac('sha256', Buffer.alloc(32, byte)).update(signed).digest('base64')}`;
    expect(requests[0]?.headers['webhook-signature']).toBe(`${signature(5)} ${signature(6)}`);
  });

  it('carries nothing over from one answer to the next request', async () => {
    respond = (response) => response.writeHead(200, { 'set-cookie': 'a=1; Path=/' }).end();
    const client = newClient();
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
  ])('shows an answer in %s decoded', async (encoding, encode) => {
    const client = newClient();
    for (const text of ['Käse fehlt', 'y'.repeat(1023), '']) {
      respond = (response) =>
        response.writeHead(500, { 'content-encoding': encoding }).end(encode(text));
      expect((await send({ client })).excerpt).toBe(text === '' ? null : text);
    }
  });

  it('decodes no more than the beginning of an answer', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 'z'));
    respond = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    const { outcome, excerpt } = await send();
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
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
  ])('takes an answer that is said to be in %s as it is: %s', async (encoding, body, excerpt) => {
    respond = (response) => response.writeHead(200, { 'content-encoding': encoding }).end(body);
    const attempted = await send();
    expect(attempted.outcome).toMatchObject({ kind: 'answered', status: 200 });
    expect(attempted.excerpt).toMatch(excerpt);
  });

  it('survives an encoded answer that is broken, wherever it is', async () => {
    const client = newClient();
    const whole = gzipSync('a text that is encoded, and repeated, and repeated, and repeated');
    for (let at = 0; at < whole.length; at += 3) {
      const broken = Buffer.from(whole);
      broken[at] = (broken[at] ?? 0) ^ 0xff;
      respond = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(broken);
      const { outcome, excerpt } = await send({ client });
      expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
      expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1024);
    }
  });

  it('goes directly, whatever proxies the environment names', async () => {
    const before = process.env;
    process.env = { ...before, HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' };
    try {
      expect((await send()).outcome).toMatchObject({ kind: 'answered', status: 200 });
    } finally {
      process.env = before;
    }
  });

  it("cannot be made to send somebody else's headers", async () => {
    const { outcome } = await send({ type: 'stamp.earned\r\nx-admin: 1' });
    expect(outcome).toMatchObject({ kind: 'failed' });
    expect(requests).toHaveLength(0);
  });

  it('does not reveal a secret that cannot be used', async () => {
    const { outcome } = await send({ secret: 'whsec_not base64 at all' });
    expect(outcome).toMatchObject({ kind: 'failed' });
    expect(JSON.stringify(outcome)).not.toContain('not base64');
  });

  it.each([
    ['an answer in many small pieces', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok', 200],
    [
      'interim answers before the final one',
      'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No\r\n\r\n',
      204,
    ],
    ['a status of its own', 'HTTP/1.1 299 Odd\r\ncontent-length: 0\r\n\r\n', 299],
    ['a body that ends early', 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf', 200],
  ])('takes %s', async (_what, answer, status) => {
    const at = await rawServer((socket) => {
      for (const letter of answer) socket.write(letter);
      socket.end();
    });
    expect((await send({ at })).outcome).toMatchObject({ kind: 'answered', status });
  });

  it.each([
    ['something that is not HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', 'The answer was not valid HTTP'],
    ['broken headers', 'HTTP/1.1 2x0 OK\r\n\r\n', 'The answer was not valid HTTP'],
    ['incomplete headers', 'HTTP/1.1 200 OK\r\ncontent-', CLOSED],
    [
      'another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
      'The answer was not valid HTTP',
    ],
    [
      'endless headers',
      `HTTP/1.1 200 OK\r\n${'x-filler: y\r\n'.repeat(10_000)}`,
      'The headers of the answer were too large',
    ],
  ])('refuses %s', async (_what, answer, error) => {
    const at = await rawServer((socket) => socket.end(answer));
    expect((await send({ at })).outcome).toEqual({ kind: 'failed', error });
  });

  it('takes an answer that comes before the body was read', async () => {
    server.removeAllListeners('request');
    server.on('request', (_request, response: http.ServerResponse) =>
      response.writeHead(413, { connection: 'close' }).end('too much'),
    );
    const { outcome } = await send({ body: Buffer.alloc(100_000, 'x') });
    expect(outcome).toMatchObject({ kind: 'answered', status: 413 });
  });

  it('names no address where nobody listens', async () => {
    const { outcome } = await send({ at: 1 });
    expect(outcome).toEqual({ kind: 'failed', error: 'The connection was refused' });
  });
});

describe('connections', () => {
  it('are used again', async () => {
    const client = newClient();
    for (let i = 0; i < 3; i++) await settledSend({ client });
    expect(requests).toHaveLength(3);
    expect(connections).toBe(1);
  });

  it('that die as they are used again are replaced at once', async () => {
    const at = await rawServer((socket, nth) => {
      if (nth === 2) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const client = newClient();
    await settledSend({ client, at });
    expect((await send({ client, at })).outcome).toMatchObject({ status: 200 });
  });

  it('that die in the middle of an answer are not', async () => {
    let checkCount = 0;
    const at = await rawServer((socket, nth) => {
      checkCount = nth;
      if (nth === 2) socket.end('HTTP/1.1 2');
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const client = newClient();
    await settledSend({ client, at });
    expect((await send({ client, at })).outcome).toEqual({ kind: 'failed', error: CLOSED });
    expect(checkCount).toBe(2);
  });

  it('that were new are not: a receiver that closes each is checkCount once', async () => {
    let checkCount = 0;
    const at = await rawServer((socket, nth) => {
      checkCount = nth;
      socket.destroy();
    });
    expect((await send({ at })).outcome).toEqual({ kind: 'failed', error: CLOSED });
    expect(checkCount).toBe(1);
  });

  it('end after a minute, so that a name may move', async () => {
    const names = await nameServer(({ nth }) => ({ addresses: [`127.0.0.${nth}`] }));
    const client = newClient(names.lookup());
    const again = () => settledSend({ client, host: 'moves.example' });
    await again();
    await again();
    expect(requests.map(({ from }) => from)).toEqual(['127.0.0.1', '127.0.0.1']);
    const [wall, steady] = [Date.now(), performance.now()];
    jest.spyOn(Date, 'now').mockReturnValue(wall + 61_000);
    jest.spyOn(performance, 'now').mockReturnValue(steady + 61_000);
    await again();
    expect(requests.at(-1)?.from).toBe('127.0.0.2');
  });
});

describe('names', () => {
  it('are kept as long as DNS says', async () => {
    const names = await nameServer(({ name }) => ({
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
    await eventuallyAskedAgain(lookup, names);
  });

  it('are looked up once for many requests at the same time', async () => {
    const names = await nameServer(() => ({ addresses: [LOOPBACK] }));
    const client = newClient(names.lookup());
    const all = Array.from({ length: 20 }, () => send({ client, host: 'busy.example' }));
    for (const { outcome } of await Promise.all(all))
      expect(outcome).toMatchObject({ status: 200 });
    expect(names.queriedNames.filter((query) => query === 'A busy.example')).toHaveLength(1);
  });

  it.each(['nxdomain', 'servfail'] as const)(
    'that end in %s are an ordinary failure',
    async (fault) => {
      const names = await nameServer(() => fault);
      const { outcome } = await send({ host: 'no.example', client: newClient(names.lookup()) });
      expect(outcome).toEqual({
        kind: 'failed',
        error: 'The name of the URL could not be resolved',
      });
    },
  );

  it('without any address are an ordinary failure', async () => {
    const names = await nameServer(() => ({ addresses: [] }));
    const { outcome } = await send({ host: 'empty.example', client: newClient(names.lookup()) });
    expect(outcome).toMatchObject({ kind: 'failed' });
  });

  it('whose servers are silent delay no others', async () => {
    const names = await nameServer(({ name }) =>
      name.startsWith('dead') ? 'silence' : { addresses: [LOOPBACK] },
    );
    const client = newClient(names.lookup());
    const order: string[] = [];
    const to = async (host: string) => {
      const { outcome } = await send({ client, host });
      order.push(`${host} ${outcome.kind}`);
    };
    const dead = Array.from({ length: 8 }, (_, i) => to(`dead${i}.example`));
    await to('live.example');
    expect(order).toEqual(['live.example answered']);
    await Promise.all(dead);
    expect(order).toContain('dead7.example failed');
  });

  it('are found in the hosts file', () => {
    const file =
      '127.0.0.1 localhost\n# 10.0.0.1 a.example\n10.0.0.2\tB.example a.example # a\nx a.example';
    expect(findInHosts(file, 'a.example')).toEqual([{ address: '10.0.0.2', family: 4 }]);
    expect(findInHosts(file, 'c.example')).toEqual([]);
  });
});

describe('addresses that must not be reached', () => {
  const strict = { WEBHOOK_ALLOW_INSECURE_TARGETS: 'false' };

  it('are refused as literals, which no resolver ever sees', async () => {
    const names = await nameServer(() => ({ addresses: [LOOPBACK] }));
    const client = newClient(names.lookup(), strict);
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:7f00:1]', 'localhost']) {
      for (const protocol of ['http', 'https']) {
        const { outcome } = await send({ client, url: `${protocol}://${host}:${port}/` });
        expect(outcome).toEqual({ kind: 'blocked' });
      }
    }
    expect(names.queriedNames).toHaveLength(0);
    expect(connections).toBe(0);
  });

  it('are refused where a name leads to nothing else', async () => {
    const names = await nameServer(() => ({
      addresses: [METADATA, `::ffff:${METADATA}`, 'fd00:ec2::254'],
    }));
    const client = newClient(names.lookup());
    expect((await send({ client, host: 'evil.example' })).outcome).toEqual({ kind: 'blocked' });
    expect(connections).toBe(0);
  });

  it('do not count where half of the answer is missing', async () => {
    const names = await nameServer(({ type }) =>
      type === 'A' ? { addresses: [METADATA] } : 'servfail',
    );
    const client = newClient(names.lookup());
    expect((await send({ client, host: 'half.example' })).outcome).toMatchObject({
      kind: 'failed',
    });
    expect(connections).toBe(0);
  });

  it('are left out where a name leads to others too', async () => {
    const names = await nameServer(() => ({ addresses: [METADATA, LOOPBACK, 'fe80::1'] }));
    const client = newClient(names.lookup());
    const { outcome } = await send({ client, host: 'mixed.example' });
    expect(outcome).toMatchObject({ status: 200 });
    expect(names.queriedNames.toSorted()).toEqual(['A mixed.example', 'AAAA mixed.example']);
    expect(requests[0]?.headers.host).toBe(`mixed.example:${port}`);
  });

  it('are refused when a name leads to them only after it was checked', async () => {
    const names = await nameServer(({ nth }) => ({
      addresses: [nth === 1 ? '8.8.8.8' : LOOPBACK],
    }));
    const lookup = names.lookup();
    expect(await lookup.resolveWithin('rebinds.example', 5_000)).toEqual(['8.8.8.8']);
    const client = newClient(lookup, strict);
    await expectBlocked(() => send({ client, url: `https://rebinds.example:${port}/` }));
    expect(connections).toBe(0);
  });

  it('are not reached on this machine, whatever the operator allows', async () => {
    const names = await nameServer(() => ({ addresses: [LOOPBACK, '::1', '::ffff:7f00:1'] }));
    const environment = { ...strict, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::/0' };
    const client = newClient(names.lookup(), environment);
    await expectBlocked(() => send({ client, url: `https://in.example:${port}/` }));
    await expectBlocked(() => send({ client, url: `https://127.0.0.1:${port}/` }));
    expect(connections).toBe(0);
  });

  it('are reached over https where the operator allows them', async () => {
    const names = await nameServer(() => ({ addresses: [ownAddress()] }));
    const environment = { ...strict, WEBHOOK_ALLOWED_CIDRS: `${ownAddress()}/32` };
    const client = newClient(names.lookup(), environment);
    const over = (protocol: string) => send({ client, url: `${protocol}://in.example:${port}/` });
    expect((await over('https')).outcome).toEqual({
      kind: 'failed',
      error: 'The receiver does not speak TLS',
    });
    expect(connections).toBe(1);
    expect((await over('http')).outcome).toEqual({ kind: 'blocked' });
  });
});

describe('several addresses', () => {
  it('are tried one after the other', async () => {
    const at = await rawServer((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    // Nothing listens on the other two.
    const names = await nameServer(() => ({ addresses: ['127.0.0.2', '127.0.0.3', LOOPBACK] }));
    const { outcome } = await send({ at, host: 'many.example', client: newClient(names.lookup()) });
    expect(outcome).toMatchObject({ status: 204 });
  });

  it('of both families are tried alternately', () => {
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

  it('are not all tried', async () => {
    const at = await rawServer((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    const broken = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    const names = await nameServer(() => ({ addresses: [...broken, LOOPBACK] }));
    const { outcome } = await send({ at, host: 'many.example', client: newClient(names.lookup()) });
    expect(outcome).toEqual({ kind: 'failed', error: 'The connection was refused' });
  });
});

/** An address of this machine that is not loopback. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const own = all.find(({ internal, family }) => !internal && family === 'IPv4');
  if (!own) throw new Error('this machine has no IPv4 address but loopback');
  return own.address;
}

/** A name with a TTL of 0 is kept for a millisecond. */
async function eventuallyAskedAgain(lookup: NameLookup, names: NameServer): Promise<void> {
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
