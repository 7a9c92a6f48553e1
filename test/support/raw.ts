import { connect } from 'node:net';

/** What a server says to bytes that no well-behaved client would send, until it closes or `enough`. */
export function exchange(
  baseUrl: string,
  bytes: string | AsyncIterable<string>,
  enough: (said: string) => boolean = () => false,
): Promise<string> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve, reject) => {
    let said = '';
    const socket = connect(Number(port), hostname, () => {
      write().catch(reject);
    });
    const write = async () => {
      for await (const part of typeof bytes === 'string' ? [bytes] : bytes) socket.write(part);
    };
    socket.on('data', (chunk) => {
      said += String(chunk);
      if (enough(said)) socket.destroy();
    });
    socket.on('close', () => resolve(said));
    // A server that closes while bytes are still under way resets the connection.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}
