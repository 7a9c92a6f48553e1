import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import fastify, { type FastifyInstance } from 'fastify';
import { connect, type AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Registry } from 'prom-client';
import type { ErrorsFilter } from '#platform/http/errors.filter.js';
import { HttpMetrics } from '#platform/http/http-metrics.js';
import { OpenRequests } from '#platform/http/open-requests.js';
import { testConfig } from '../support/database/database.js';
import { exchange } from '../support/http/raw-request.js';
import { eventually } from '../support/jest/eventually.js';

const QUICK = 'GET /quick HTTP/1.1\r\nHost: x\r\n\r\n';
const SLOW = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n';
const BODY = 'x'.repeat(1_000);
const EARLY = `POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n\r\n`;
const CHUNKED =
  'POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n';

let server: FastifyInstance;
let metrics: HttpMetrics;
let replies: WeakRef<object>[];
let closedCount: number;

beforeEach(async () => {
  replies = [];
  closedCount = 0;
  metrics = new HttpMetrics(new Registry());
  const open = new OpenRequests();
  server = fastify({
    clientErrorHandler: (_error, socket) => {
      if (open.isAwaited(socket)) socket.destroy();
      else socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    },
  });
  const parts = { metrics, errors: {} as ErrorsFilter };
  open.install(server, testConfig('postgres://127.0.0.1/none'), parts);
  server.addHook('onRequest', (request, reply, done) => {
    replies.push(new WeakRef(reply));
    reply.raw.on('close', () => closedCount++);
    if (request.url === '/early') void reply.status(401).send('early');
    else done();
  });
  server.post('/early', () => 'never');
  server.get('/quick', () => 'quick');
  server.get('/slow', () => new Promise(() => undefined));
  await server.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(() => server.close());

function send(
  bytes: string | AsyncIterable<string>,
  enough?: (received: string) => boolean,
): Promise<string> {
  const { port } = server.server.address() as AddressInfo;
  return exchange(`http://127.0.0.1:${port}`, bytes, enough);
}

describe('a request whose client is gone', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const countRemaining = () => {
    collectGarbage();
    return replies.filter((reply) => reply.deref() !== undefined).length;
  };

  it.each([
    ['before its body arrived', `${EARLY}half`, 1],
    ['before its chunks arrived', CHUNKED, 1],
    ['before its body arrived, after others on the connection', `${QUICK}${QUICK}${EARLY}half`, 3],
    ['before its body arrived, after another such one', `${EARLY}${BODY}${EARLY}half`, 2],
  ])('leaves nothing in memory when it got its response %s', async (_name, bytes, count) => {
    const isLast = (received: string) => received.split('HTTP/1.1').length > count;
    await send(bytes, isLast);
    await eventually(countRemaining, (remaining) => remaining === 0);
    expect([replies.length, closedCount, metrics.inFlightCount]).toEqual([count, count, 0]);
  });

  it('leaves nothing in memory when it got its response before what is no chunk', async () => {
    async function* bytes() {
      yield CHUNKED;
      await eventually(
        () => closedCount,
        (count) => count === 1,
      );
      yield 'nonsense\r\n';
    }
    expect(await send(bytes())).toMatch(/^HTTP\/1\.1 401 [^]*early$/);
    await eventually(countRemaining, (remaining) => remaining === 0);
  });

  it('leaves nothing in memory when it waited for an earlier response on its connection', async () => {
    const { port } = server.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    socket.write(`${SLOW}${QUICK}${SLOW}${EARLY}half`);
    await eventually(
      () => replies.length,
      (count) => count === 4,
    );
    expect([closedCount, metrics.inFlightCount]).toEqual([0, 4]);
    socket.destroy();
    await eventually(
      () => closedCount,
      (count) => count === 4,
    );
    await eventually(countRemaining, (remaining) => remaining === 0);
    expect([closedCount, metrics.inFlightCount]).toEqual([4, 0]);
  });
});

describe('the connection of an early response', () => {
  it('gets the response to what is no HTTP once the body has arrived', async () => {
    async function* bytes() {
      yield EARLY;
      await eventually(
        () => closedCount,
        (count) => count === 1,
      );
      yield `${BODY}nonsense\r\n\r\n`;
    }
    expect(await send(bytes())).toMatch(/^HTTP\/1\.1 401 [^]*earlyHTTP\/1\.1 400 /);
  });
});
