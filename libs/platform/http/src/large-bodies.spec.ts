import { describe, expect, it } from '@jest/globals';
import fastify, { type FastifyRequest } from 'fastify';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { API_BODY_LIMIT } from './body-limit.js';
import { readLargeBody, reserveLargeBodies } from './large-bodies.js';

describe('reserveLargeBodies', () => {
  it('reserves nothing for a client that has gone while the guards waited', async () => {
    const server = fastify();
    const guarded = { count: 0 };
    server.addHook('onRequest', async ({ headers }, reply) => {
      if (!headers['x-waits']) return;
      await once(reply.raw, 'close');
      guarded.count++;
    });
    reserveLargeBodies(server);
    server.addContentTypeParser('text/csv', (request: FastifyRequest, body: Readable) =>
      readLargeBody(request, body),
    );
    server.route({
      method: 'POST',
      url: '/',
      bodyLimit: 2 * API_BODY_LIMIT,
      config: { bodyLimit: 2 * API_BODY_LIMIT },
      handler: () => 'read',
    });
    await server.listen({ host: '127.0.0.1', port: 0 });
    const { port } = server.server.address() as AddressInfo;
    try {
      for (let sent = 1; sent <= 3; sent++) {
        const socket = connect({ host: '127.0.0.1', port });
        socket.write(
          'POST / HTTP/1.1\r\nHost: a\r\nX-Waits: 1\r\nContent-Type: text/csv\r\nContent-Length: 9\r\n\r\na',
        );
        await once(server.server, 'request');
        socket.destroy();
        while (guarded.count < sent) await wait(1);
      }
      const response = await fetch(`http://127.0.0.1:${port}/`, {
        method: 'POST',
        headers: { 'content-type': 'text/csv' },
        body: 'a,b',
      });
      expect([response.status, await response.text()]).toEqual([200, 'read']);
    } finally {
      await server.close();
    }
  });
});
