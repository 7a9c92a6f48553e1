import type { Server, ServerResponse } from 'node:http';
import type { PlatformConfig } from '#kernel/platform-config.js';
import type { Health } from './readiness.js';
import { startServer } from './operator-server.js';

export type Liveness = { check: string; isAlive: () => boolean };

/** Serves the two health paths of the api, for a process that serves nothing else. */
export async function listenForHealth(
  { monitoringHost: host, healthPort: port }: PlatformConfig,
  getHealth: () => Promise<Health>,
  /** The check that makes the process fail, and whether it passes. */
  { check, isAlive }: Liveness = { check: 'process', isAlive: () => true },
): Promise<Server> {
  return startServer('HEALTH_PORT', { host, port }, (request, response) => {
    switch (request.url?.split('?', 1)[0]) {
      case '/health/live':
        return isAlive()
          ? send(response, 200, { status: 'ok' })
          : send(response, 503, { status: 'unavailable', checks: { [check]: 'unavailable' } });
      case '/health/ready':
        return void getHealth().then((health) =>
          send(response, health.status === 'ok' ? 200 : 503, health),
        );
      default:
        return send(response, 404, { error: 'This path does not exist', code: 'not_found' });
    }
  });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.end(JSON.stringify(body));
}
