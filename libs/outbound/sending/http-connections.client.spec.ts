import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { errors, type buildConnector } from 'undici';
import { selfSigned } from '../../../test/support/emulators/eventstoredb/certificate.mjs';
import { eventually } from '../../../test/support/jest/eventually.js';
import type { ReceiverResponse } from './http-response.js';
import { Deadlines } from './deadlines.client.js';
import { HttpConnections } from './http-connections.client.js';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const plain: buildConnector.connector = ({ hostname, port }, callback) => {
  const socket = connect(Number(port), hostname);
  clients.push(socket);
  socket.once('connect', () => callback(null, socket));
};

let server: Server;
let sockets: Socket[];
/** The clients' ends of these, in the same order. */
let clients: Socket[];
/** Responds to the nth request of all. */
let respond: (socket: Socket, nth: number) => void;
let connections: HttpConnections;

beforeEach(async () => {
  sockets = [];
  clients = [];
  let nth = 0;
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      if (bytes.includes('POST ')) respond(socket, ++nth);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  respond = (socket) => socket.write(OK);
  connections = new HttpConnections(plain, new Deadlines(10_000));
});

afterEach(async () => {
  await connections.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

function send(body = Buffer.from('{}')): Promise<ReceiverResponse> {
  const { port } = server.address() as AddressInfo;
  const headers = { 'content-type': 'application/json' };
  return connections.send({ origin: `http://127.0.0.1:${port}`, path: '/hooks', headers, body });
}

it.each([
  ['with its length', 'content-length: 3\r\n\r\nend', true, false],
  ['in chunks', 'transfer-encoding: chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n', true, false],
  ['shorter than its length', 'content-length: 30\r\n\r\nend', false, true],
  ['without its last chunk', 'transfer-encoding: chunked\r\n\r\n3\r\nend\r\n', false, true],
  ['up to the end of the connection', '\r\nend', false, true],
  ['beyond what is kept', `content-length: 5000\r\n\r\n${'x'.repeat(5_000)}`, false, false],
])('tells whether a body is whole: %s', async (_what, rest, isWhole, isClosed) => {
  respond = (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${rest}`);
    if (isClosed) socket.end();
  };
  expect(await send()).toMatchObject({ status: 200, isWhole });
});

async function waitUntilClosed(count: number): Promise<void> {
  await eventually(
    () => sockets.filter((socket) => socket.destroyed).length,
    (is) => is === count,
  );
}

describe('a connection', () => {
  it('is reused', async () => {
    for (let i = 0; i < 5; i++) await send();
    expect(sockets).toHaveLength(1);
  });

  it.each([
    ['Connection: close', 'connection: Upgrade, CLOSE'],
    ['a Keep-Alive timeout of two seconds', 'keep-alive: timeout=2, max=100'],
  ])('is not reused after a response with %s', async (_what, field) => {
    respond = (socket) => socket.write(`HTTP/1.1 200 OK\r\n${field}\r\ncontent-length: 0\r\n\r\n`);
    await send();
    await send();
    expect(sockets).toHaveLength(2);
    await waitUntilClosed(2);
  });

  it('is reused after a response with a Keep-Alive timeout of five seconds', async () => {
    const response = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: 0\r\n\r\n';
    respond = (socket) => socket.write(response);
    await send();
    await send();
    expect(sockets).toHaveLength(1);
  });

  it('is not reused after bytes that follow a response', async () => {
    respond = (socket, nth) => {
      socket.write(nth === 1 ? `${OK}HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n` : OK);
    };
    expect((await send()).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });

  it('is closed when bytes arrive without a request', async () => {
    await send();
    sockets[0]?.write('HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n');
    await eventually(
      () => clients[0]?.bytesRead,
      (count = 0) => count > OK.length,
    );
    expect(clients[0]?.destroyed).toBe(true);
    expect((await send()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });

  it('is not reused while a request is still being written', async () => {
    respond = (socket, nth) => {
      if (nth === 1) socket.pause();
      socket.write(OK);
    };
    expect((await send(Buffer.alloc(64 * 1024 * 1024))).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });
});

/** Responds on a thread of its own, even while this one is busy, and counts its responses. */
const TLS_RECEIVER = `
  const { parentPort, workerData: { cert, key, ok, responseCount } } = require('node:worker_threads');
  const server = require('node:tls').createServer({ cert, key }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => socket.write(ok, () => {
      Atomics.add(responseCount, 0, 1);
      Atomics.notify(responseCount, 0);
    }));
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

it('a connection over TLS is reused after a response that arrives before the write is reported as finished', async () => {
  const { cert, key } = selfSigned();
  const responseCount = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { cert, key, ok: OK, responseCount };
  const receiver = new Worker(TLS_RECEIVER, { eval: true, workerData });
  const [port] = (await once(receiver, 'message')) as [number];
  let connectionCount = 0;
  const tlsConnections = new HttpConnections((_, callback) => {
    connectionCount++;
    const socket = connectTls({ host: '127.0.0.1', port, ca: cert });
    socket.once('secureConnect', () => callback(null, socket));
  }, new Deadlines(10_000));
  const body = Buffer.from('{}');
  try {
    for (let i = 0; i < 5; i++) {
      const response = tlsConnections.send({
        origin: `https://127.0.0.1:${port}`,
        path: '/',
        headers: {},
        body,
      });
      // Right after the request was written, and before the event loop sees that the write has finished.
      if (i > 0) setImmediate(() => Atomics.wait(responseCount, 0, i, 10_000));
      expect((await response).status).toBe(200);
    }
    expect(connectionCount).toBe(1);
  } finally {
    await tlsConnections.close();
    await receiver.terminate();
  }
});

describe('a request', () => {
  it('is sent again once, on a new connection, when its idle connection dies', async () => {
    await Promise.all([send(), send(), send()]);
    expect(sockets).toHaveLength(3);
    let requestCount = 0;
    respond = (socket) => {
      requestCount++;
      if (sockets.indexOf(socket) < 3) socket.destroy();
      else socket.write(OK);
    };
    expect((await send()).status).toBe(200);
    expect(requestCount).toBe(2);
    respond = (socket) => {
      requestCount++;
      socket.destroy();
    };
    await expect(send()).rejects.toThrow(errors.SocketError);
    expect(requestCount).toBe(4);
  });

  it('fails when the connections are closed, and so do later requests', async () => {
    await send();
    let isRequested = false;
    respond = () => (isRequested = true);
    const pending = Promise.allSettled([send()]);
    await eventually(
      () => isRequested,
      (is) => is,
    );
    const waiting = Promise.allSettled([send()]);
    await connections.close();
    const later = Promise.allSettled([send()]);
    for (const result of [...(await pending), ...(await waiting), ...(await later)]) {
      expect(result).toEqual({
        status: 'rejected',
        reason: expect.any(errors.ClientDestroyedError),
      });
    }
    await waitUntilClosed(sockets.length);
  });
});
