import type { Server } from 'node:http';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import type { Health } from './readiness.js';
import { sendJson, startServer } from './operator-server.js';

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
          ? sendJson(response, 200, { status: 'ok' })
          : sendJson(response, 503, { status: 'unavailable', checks: { [check]: 'unavailable' } });
      case '/health/ready':
        return void getHealth().then((health) =>
          sendJson(response, health.status === 'ok' ? 200 : 503, health),
        );
      default:
        return sendJson(response, 404, { error: 'This path does not exist', code: 'not_found' });
    }
  });
}
