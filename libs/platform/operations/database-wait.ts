import type { Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { UnreachableError } from '#platform/kernel/config-error.js';
import { Log } from '#platform/kernel/log.js';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import type { ProcessName } from '#platform/kernel/process-name.js';
import { createDatabaseClient } from '#platform/database/database-client.js';
import { connectFirst } from '#platform/database/first-connection.js';
import { getPath } from '#platform/http/path.js';
import { sendJson, startServer } from './operator-server.js';

const RETRY_MS = 1_000;
const LOG_INTERVAL_MS = 60_000;

const NOT_READY = { status: 'unavailable', checks: { database: 'unavailable' } };
const UNAVAILABLE = {
  error: 'The service is starting: its database cannot be reached yet',
  code: 'unavailable',
  resolution: 'Nothing was written. Send the request again in a moment.',
};
const UNAVAILABLE_HEADERS = { connection: 'close', 'retry-after': '1' };

/**
 * Waits at the start until the database accepts a connection: a process that exited instead would be restarted at ever
 * longer intervals. Meanwhile the process is alive and not ready, and responds to everything else with 503.
 * @returns false when the process has to stop before
 * @throws UnreachableError when the database stays away longer than `startWaitSeconds`
 * @throws ConfigError when waiting does not help
 */
export async function waitForDatabase(
  config: PlatformConfig,
  program: ProcessName,
  stopSignal: AbortSignal,
): Promise<boolean> {
  const log = new Log(config, program);
  const deadline = performance.now() + config.startWaitSeconds * 1_000;
  let server: Server | undefined;
  let nextLogAt = 0;
  try {
    for (;;) {
      if (stopSignal.aborted) return false;
      const failure = await findFailure(config.databaseUrl);
      if (failure === undefined) break;
      const now = performance.now();
      if (now >= deadline) throw failure;
      server ??= await listenWhileWaiting(config, program);
      if (now >= nextLogAt) {
        log.warn(`${failure.message} Waiting for it.`, 'start');
        nextLogAt = now + LOG_INTERVAL_MS;
      }
      await wait(RETRY_MS, undefined, { signal: stopSignal }).catch(() => undefined);
    }
    if (server) log.log('the database responds', 'start');
    return true;
  } finally {
    await close(server);
  }
}

async function findFailure(databaseUrl: string): Promise<UnreachableError | undefined> {
  const client = createDatabaseClient(databaseUrl, 'start');
  try {
    await connectFirst(databaseUrl, () => client.connect());
    await client.end();
    return undefined;
  } catch (error) {
    if (error instanceof UnreachableError) return error;
    throw error;
  }
}

/** Listens where the process itself will listen for health checks: for the api also the address of its callers. */
function listenWhileWaiting(config: PlatformConfig, program: ProcessName): Promise<Server> {
  const [setting, address] =
    program === 'api'
      ? ['PORT', { host: config.host, port: config.port }]
      : ['HEALTH_PORT', { host: config.monitoringHost, port: config.healthPort }];
  return startServer(setting, address, (request, response) => {
    request.resume();
    switch (getPath(request.url ?? '')) {
      case '/health/live':
        return sendJson(response, 200, { status: 'ok' }, { connection: 'close' });
      case '/health/ready':
        return sendJson(response, 503, NOT_READY, UNAVAILABLE_HEADERS);
      default:
        return sendJson(response, 503, UNAVAILABLE, UNAVAILABLE_HEADERS);
    }
  });
}

async function close(server: Server | undefined): Promise<void> {
  if (!server) return;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
