import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { errors, type buildConnector } from 'undici';
import { selfSigned } from '../../../../test/support/emulators/eventstoredb/certificate.mjs';
import { eventually } from '../../../../test/support/jest/eventually.js';
import type { ReceiverResponse } from './response.js';
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
/** The other ends of these, in the same order. */
let clients: Socket[];
/** What the nth request of all is answered with. */
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

async function untilEnded(count: number): Promise<void> {
  await eventually(
    () => sockets.filter((socket) => socket.destroyed).length,
    (is) => is === count,
  );
}

describe('a connection', () => {
  it('is used again', async () => {
    for (let i = 0; i < 5; i++) await send();
    expect(sockets).toHaveLength(1);
  });

  it.each([
    ['Connection: close', 'connection: Upgrade, CLOSE'],
    ['a Keep-Alive that is about to end', 'keep-alive: timeout=2, max=100'],
  ])('is not used again after %s', async (_what, field) => {
    respond = (socket) => socket.write(`HTTP/1.1 200 OK\r\n${field}\r\ncontent-length: 0\r\n\r\n`);
    await send();
    await send();
    expect(sockets).toHaveLength(2);
    await untilEnded(2);
  });

  it('is used again after a Keep-Alive that lasts', async () => {
    const lasting = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ncontent-length: 0\r\n\r\n';
    respond = (socket) => socket.write(lasting);
    await send();
    await send();
    expect(sockets).toHaveLength(1);
  });

  it('is not used again after bytes that follow an answer', async () => {
    respond = (socket, nth) => {
      socket.write(nth === 1 ? `${OK}HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n` : OK);
    };
    expect((await send()).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });

  it('ends when bytes come that nobody has asked for', async () => {
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

  it('is not used again while a request is still being written', async () => {
    respond = (socket, nth) => {
      if (nth === 1) socket.pause();
      socket.write(OK);
    };
    expect((await send(Buffer.alloc(64 * 1024 * 1024))).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });
});

/** On a thread of its own, so that it answers while this one is busy. Counts what it has answered. */
const TLS_RECEIVER = `
  const { parentPort, workerData: { cert, key, ok, answers } } = require('node:worker_threads');
  const server = require('node:tls').createServer({ cert, key }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', () => socket.write(ok, () => {
      Atomics.add(answers, 0, 1);
      Atomics.notify(answers, 0);
    }));
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

it('a connection over TLS is used again after an answer that is there before the end of the write is seen', async () => {
  const { cert, key } = selfSigned();
  const answers = new Int32Array(new SharedArrayBuffer(4));
  const workerData = { cert, key, ok: OK, answers };
  const receiver = new Worker(TLS_RECEIVER, { eval: true, workerData });
  const [port] = (await once(receiver, 'message')) as [number];
  let connectionCount = 0;
  const overTls = new HttpConnections((_, callback) => {
    connectionCount++;
    const socket = connectTls({ host: '127.0.0.1', port, ca: cert });
    socket.once('secureConnect', () => callback(null, socket));
  }, new Deadlines(10_000));
  const body = Buffer.from('{}');
  try {
    for (let i = 0; i < 5; i++) {
      const sent = overTls.send({
        origin: `https://127.0.0.1:${port}`,
        path: '/',
        headers: {},
        body,
      });
      // Right after the request was written, and before the event loop looks at what has become of that.
      if (i > 0) setImmediate(() => Atomics.wait(answers, 0, i, 10_000));
      expect((await sent).status).toBe(200);
    }
    expect(connectionCount).toBe(1);
  } finally {
    await overTls.close();
    await receiver.terminate();
  }
});

describe('a request', () => {
  it('whose connection dies idle is sent once more, on a new one, and not twice', async () => {
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

  it('fails when everything ends, and so do later ones', async () => {
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
    for (const one of [...(await pending), ...(await waiting), ...(await later)]) {
      expect(one).toEqual({ status: 'rejected', reason: expect.any(errors.ClientDestroyedError) });
    }
    await untilEnded(sockets.length);
  });
});
