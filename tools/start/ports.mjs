import { findPortError } from '../../apps/cli/local-postgres/embedded-postgres.mjs';
import { StartFailure } from '../../apps/cli/start-failure.mjs';

const METRICS_PORTS = { api: 9464, dispatcher: 9465 };

/** @throws StartFailure */
export async function checkPort(port) {
  const code = await findPortError(port);
  if (code === 'EADDRINUSE') {
    throw new StartFailure(
      `Port ${port} is already used by another program; choose another one, for example with PORT=${port + 1} npm start.`,
    );
  }
  if (code === 'EACCES') {
    throw new StartFailure(
      `This user is not allowed to listen on port ${port}; choose one above 1023, for example with PORT=3000 npm start.`,
    );
  }
}

/** Checks before the start that all ports are free. @throws StartFailure */
export async function checkMonitoringPorts() {
  const { HEALTH_PORT: health, METRICS_PORT: metrics } = process.env;
  const ports = [
    ['HEALTH_PORT', Number(health)],
    ['METRICS_PORT', Number(metrics)],
    ['METRICS_PORT', findDispatcherPort(Number(metrics))],
  ].filter(([, port]) => port > 0 && port <= 65_535);
  for (const [name, port] of ports) {
    const code = await findPortError(port);
    if (!code) continue;
    const why = code === 'EACCES' ? 'is not for this user' : 'is already used by another program';
    throw new StartFailure(`${name}: port ${port} ${why}; choose another one, or 0 for any.`);
  }
}

/**
 * Reads the ports of the metrics. A port that is configured is the api's; the dispatcher gets the next one. Empty
 * without one: the programs take the usual port, or any other if they find it taken, also by another Inkpad that
 * started in the same second.
 */
export async function readMetricsPort(name) {
  const setting = process.env.METRICS_PORT;
  if (setting) return name === 'dispatcher' ? String(findDispatcherPort(Number(setting))) : setting;
  return (await findPortError(METRICS_PORTS[name])) ? '0' : '';
}

/** Finds the next port that no other setting names; 0, which is any, where there is none. */
function findDispatcherPort(setting) {
  // Anything else the programs refuse.
  if (!Number.isInteger(setting) || setting < 1) return setting;
  const named = new Set([process.env.PORT || 3000, process.env.HEALTH_PORT].map(Number));
  let port = setting + 1;
  while (named.has(port)) port += 1;
  return port <= 65_535 ? port : 0;
}
