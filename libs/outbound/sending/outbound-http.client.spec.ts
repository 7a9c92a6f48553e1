import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { OutboundHttp } from './outbound-http.client.js';

let server: Server;
let connections: Socket[];
let receivedText: string;

beforeEach(async () => {
  connections = [];
  receivedText = '';
  server = createServer((socket) => {
    connections.push(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      receivedText += bytes.toString();
      if (receivedText.endsWith('body'))
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  for (const socket of connections) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const send = (mayBeSent: () => boolean) =>
  new OutboundHttp(null).fetchChecked(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    { method: 'POST', body: 'body' },
    mayBeSent,
  );

it('fetchChecked sends the length of its body', async () => {
  const response = await send(() => true);
  expect([response.status, await response.text()]).toEqual([200, 'ok']);
  expect(receivedText).toMatch(/\r\ncontent-length: 4\r\n/i);
  expect(receivedText).not.toMatch(/chunked/i);
});

it('fetchChecked calls mayBeSent once it is connected, and writes no body when that is false', async () => {
  const connectionsAtCheck: number[] = [];
  const response = send(() => {
    connectionsAtCheck.push(connections.length);
    return false;
  });
  await expect(response).rejects.toThrow(TypeError);
  expect(connectionsAtCheck).toEqual([1]);
  expect(receivedText).not.toContain('body');
});
