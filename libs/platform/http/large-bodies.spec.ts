import { describe, expect, it } from '@jest/globals';
import fastify, { type FastifyRequest } from 'fastify';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { API_BODY_LIMIT } from './request-bodies.js';
import { readLargeBody, reserveLargeBodies, UploadRoom } from './large-bodies.js';

const MIB = 1024 * 1024;

/** Reserves room, or fails the test. */
function reserve(room: UploadRoom, accountId: number, mib: number, owner = accountId): () => void {
  const release = room.reserve(accountId, mib * MIB, owner);
  if (typeof release === 'string') throw new Error(release);
  return release;
}

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

describe('UploadRoom', () => {
  it('has room for two uploads of an account, however small, and for those of others', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 0);
    reserve(room, 1, 0);
    expect(room.reserve(1, 1)).toBe('2 uploads of this account are still under way');
    reserve(room, 2, 0);
    release();
    reserve(room, 1, 0);
    expect(room.reserve(1, 1)).toMatch(/account/);
  });

  it('has room for 80 MiB of all accounts', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 20);
    reserve(room, 1, 20);
    reserve(room, 2, 36);
    expect(room.reserve(3, 4 * MIB + 1)).toBe('Too many files are being uploaded at once');
    reserve(room, 3, 4);
    expect(room.reserve(4, 1)).toMatch(/Too many/);
    release();
    reserve(room, 4, 20);
  });

  it('takes the room of an upload back once', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 20);
    reserve(room, 1, 20);
    release();
    release();
    reserve(room, 1, 20);
    reserve(room, 2, 40);
    expect(room.reserve(3, 1)).toMatch(/Too many/);
    expect(room.reserve(1, 0)).toMatch(/account/);
  });

  it('has room for 40 MiB of one owner, however many accounts that has, and as much for others', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 20, 1);
    reserve(room, 2, 19, 1);
    expect(room.reserve(3, 2 * MIB, 1)).toBe('Too many of your files are being uploaded at once');
    reserve(room, 4, 1, 1);
    reserve(room, 5, 20, 5);
    reserve(room, 6, 20, 5);
    release();
    reserve(room, 7, 20, 1);
  });
});
