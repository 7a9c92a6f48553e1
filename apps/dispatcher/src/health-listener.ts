import { createServer, type Server, type ServerResponse } from 'node:http';
import { ConfigError, type Config } from '#kernel/config.js';
import type { Health } from '#http/readiness.js';

/** The same two paths as the api's, for a process that answers nothing else. */
export async function listenForHealth(
  config: Config,
  ready: () => Promise<Health>,
): Promise<Server> {
  const server = createServer((request, response) => {
    switch (request.url?.split('?', 1)[0]) {
      case '/health/live':
        return send(response, 200, { status: 'ok' });
      case '/health/ready':
        return void ready().then((health) =>
          send(response, health.status === 'ok' ? 200 : 503, health),
        );
      default:
        return send(response, 404, { error: 'This path does not exist', code: 'not_found' });
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `HEALTH_PORT: cannot listen on port ${config.healthPort} (${cause.message}); choose another one, or 0 for any`;
      reject(new ConfigError(message, { cause }));
    });
    server.listen(config.healthPort, config.host, resolve);
  });
  return server;
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.end(JSON.stringify(body));
}
