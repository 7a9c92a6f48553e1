import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

type RawResponse = { status: number; headers: IncomingHttpHeaders; body: Buffer };

/** Gets the raw bytes, which fetch would decompress, without the headers that fetch adds. */
export function rawGet(url: string, headers: Record<string, string>): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { headers }, (response) => {
      const { statusCode: status = 0, headers: responseHeaders } = response;
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status, headers: responseHeaders, body: Buffer.concat(chunks) }),
      );
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

/** Sends bytes that no well-behaved client would send; reads until the server closes or `enough`. */
export function exchange(
  baseUrl: string,
  bytes: string | AsyncIterable<string>,
  enough: (received: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(Number(port), hostname, () => {
      write().catch(reject);
    });
    const write = async () => {
      for await (const part of typeof bytes === 'string' ? [bytes] : bytes) socket.write(part);
    };
    socket.on('data', (chunk) => {
      received += String(chunk);
      if (enough(received)) socket.destroy();
    });
    socket.on('close', () => resolve(received));
    // A server that closes while bytes are in flight resets the connection.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}
