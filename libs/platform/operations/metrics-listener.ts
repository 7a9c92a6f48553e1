import { Logger } from '@nestjs/common';
import type { RequestListener, Server } from 'node:http';
import { totalmem } from 'node:os';
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import { type PlatformConfig } from '#platform/kernel/platform-config.js';
import { METRICS_PORTS, type ProcessName } from '#platform/kernel/process-name.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { VERSION } from '#platform/kernel/version.js';
import { getPath } from '#platform/http/path.js';
import { isPortTaken, startServer, getPort } from './operator-server.js';

/**
 * How often the lag of the event loop is measured, which includes this interval. Each time wakes the process, by default a
 * hundred times a second.
 */
const LAG_EVERY_MS = 50;

/**
 * Serves `GET /metrics` for Prometheus, on its own port: callers of the api must not see it. Without a setting, and
 * outside of production, any port is used when another Inkpad on this machine has the usual one.
 * @throws ConfigError when it cannot listen on the port
 */
export async function listenForMetrics(
  {
    monitoringHost: host,
    metricsPort,
    isProduction,
  }: Pick<PlatformConfig, 'monitoringHost' | 'metricsPort' | 'isProduction'>,
  program: ProcessName,
  registry: Registry,
): Promise<Server> {
  const log = new Logger('metrics');
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  new Gauge({
    name: 'inkpad_build_info',
    help: 'Always 1; the labels name the process and its version',
    labelNames: ['process', 'version'],
    registers: [registry],
  }).set({ process: program, version: VERSION }, 1);
  addMemoryLimit(registry);
  const serve: RequestListener = (request, response) => {
    if (getPath(request.url ?? '') !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      (error: unknown) => {
        log.error(`cannot be collected: ${getErrorMessage(error)}`);
        response.writeHead(500).end();
      },
    );
  };
  const listen = (port: number) => startServer('METRICS_PORT', { host, port }, serve);
  const server = await listen(metricsPort ?? METRICS_PORTS[program]).catch((error: unknown) => {
    if (metricsPort !== null || isProduction || !isPortTaken(error)) throw error;
    return listen(0);
  });
  log.log(`on port ${getPort(server)}`);
  return server;
}

/** Exports how much memory the process may use, where its container limits that. */
function addMemoryLimit(registry: Registry): void {
  const limit = process.constrainedMemory();
  const gauge = new Gauge({
    name: 'inkpad_memory_limit_bytes',
    help: 'How much memory the container of this process may use; +Inf without a limit',
    registers: [registry],
  });
  // Without one it is unknown (0), or more than the machine has.
  gauge.set(limit > 0 && limit <= totalmem() ? limit : Infinity);
}
