import { afterEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { EventStoreDbConnection } from './eventstoredb-connection.js';

const UNAVAILABLE = '14';

const server = createServer();
afterEach(() => void server.close());

it('sends requests that accept no compressed response', async () => {
  const requests: IncomingHttpHeaders[] = [];
  server.on('stream', (stream, headers) => {
    requests.push(headers);
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': UNAVAILABLE },
      { endStream: true },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const connection = new EventStoreDbConnection(`esdb://127.0.0.1:${port}?tls=false`);
  await connection.call((client) => client.getStreamMetadata('a')).catch(() => undefined);
  await connection.dispose();

  expect(requests.map((headers) => headers['grpc-accept-encoding'])).toContain('identity');
  for (const headers of requests) expect(headers['grpc-accept-encoding']).toBe('identity');
});
