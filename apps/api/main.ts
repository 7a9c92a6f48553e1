import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { setTimeout as wait } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { findLogFormat } from '#platform/kernel/log-lines.js';
import { refuseToStart, reportUnhandled } from '#platform/kernel/start-error.js';
import { releaseStartMemory } from '#platform/kernel/start-memory.js';
import { listenForStop, type StopRequest } from '#platform/kernel/stop.js';
import { startTracing } from '#platform/kernel/tracing.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { waitForDatabase } from '#platform/operations/database-wait.js';
import { listenForMetrics } from '#platform/operations/metrics-listener.js';
import { Readiness } from '#platform/operations/readiness.js';
import { createNodeAgents } from '#outbound/sending/outbound-node-agent.client.js';
import { createServer } from './server.js';
import { ApiModule } from './api.module.js';

const reporter = { program: 'api', format: findLogFormat(process.env) };
reportUnhandled(reporter);
try {
  await run(listenForStop());
} catch (error) {
  refuseToStart(error, reporter);
}

async function run({ received, signal }: StopRequest): Promise<void> {
  const config = readConfig(process.env, 'api');
  if (!(await waitForDatabase(config, 'api', signal))) process.exit(0);
  await startTracing(config, 'api', createNodeAgents(config));
  const app = await createServer(ApiModule.forRoot(config), config);
  await listenForMetrics(config, 'api', app.get(Registry, { strict: false }));
  await app.get(ProcessSession, { strict: false }).start('api');
  releaseStartMemory();
  await listen(app, config);
  const log = new Logger('api');
  log.log(`listening on ${await app.getUrl()}`);
  const stopSignal = await received;
  app.get(Readiness).stop();
  await serveDuringDelay(config);
  await app.close();
  log.log(`stopped by ${stopSignal}`);
  process.exit(0);
}

/** Goes on serving, since load balancers take some time to notice that the process is not ready. */
async function serveDuringDelay({ shutdownDelaySeconds: seconds }: Config): Promise<void> {
  if (seconds === 0) return;
  new Logger('api').log(`not ready any more; serving for another ${seconds} s`);
  await wait(seconds * 1000);
}

/** @throws ConfigError when the address cannot be had */
async function listen(app: NestFastifyApplication, { host, port }: Config): Promise<void> {
  try {
    await app.listen(port, host);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const message =
      code === 'EADDRINUSE' || code === 'EACCES'
        ? `PORT: cannot listen on port ${port} (${getErrorMessage(cause)}); choose another one`
        : `HOST: cannot listen at ${host} (${getErrorMessage(cause)}); choose an address of this machine`;
    throw new ConfigError(message, { cause });
  }
}
