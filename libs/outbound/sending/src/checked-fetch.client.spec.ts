import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { fetchChecked } from './checked-fetch.client.js';

let server: Server;
let connections: Socket[];
let received: string;

beforeEach(async () => {
  connections = [];
  received = '';
  server = createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      received += bytes.toString();
      if (received.endsWith('body')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  for (const socket of connections) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const send = (mayBeSent: () => boolean) =>
  fetchChecked(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    { method: 'POST', body: 'body' },
    mayBeSent,
  );

it('a checked request says how long its body is', async () => {
  const response = await send(() => true);
  expect([response.status, await response.text()]).toEqual([200, 'ok']);
  expect(received).toMatch(/\r\ncontent-length: 4\r\n/i);
  expect(received).not.toMatch(/chunked/i);
});

it('a checked request asks once it is connected, and writes nothing of what went out of date', async () => {
  const connectionsWhenAsked: number[] = [];
  const sending = send(() => {
    connectionsWhenAsked.push(connections.length);
    return false;
  });
  await expect(sending).rejects.toThrow(TypeError);
  expect(connectionsWhenAsked).toEqual([1]);
  expect(received).not.toContain('body');
});
