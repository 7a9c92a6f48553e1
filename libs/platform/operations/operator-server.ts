import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConfigError } from '#platform/kernel/config-error.js';

/**
 * Starts a small server for operators, next to the process's main work.
 * @param setting that holds the port
 * @throws ConfigError when it cannot listen on the port
 */
export async function startServer(
  setting: string,
  { host, port }: { host: string; port: number },
  handler: RequestListener,
): Promise<Server> {
  const server = createServer(handler);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const isPort = cause.code === 'EADDRINUSE' || cause.code === 'EACCES';
      const message = isPort
        ? `${setting}: cannot listen on port ${port} (${cause.message}); choose another one, or 0 for any`
        : `MONITORING_HOST: cannot listen at ${host} (${cause.message}); choose an address of this machine`;
      reject(new ConfigError(message, { cause }));
    });
    server.listen(port, host, resolve);
  });
  // It must not keep the process alive by itself.
  return server.unref();
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...headers,
  });
  response.end(JSON.stringify(body));
}

/** Tells whether listening failed because another program uses the port. */
export function isPortTaken(error: unknown): boolean {
  const cause = error instanceof ConfigError ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
}

export function getPort(server: Server): number {
  return (server.address() as AddressInfo).port;
}
