import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Registry } from 'prom-client';
import { readConfig, type Config } from '#configuration/config.js';
import { ConfigError } from '#kernel/config-error.js';
import { getErrorMessage } from '#kernel/errors.js';
import { refuseToStart } from '#kernel/start-error.js';
import { releaseStartMemory } from '#kernel/start-memory.js';
import { exitAfterTimeout } from '#kernel/stop.js';
import { startTracing } from '#kernel/tracing.js';
import { listenForMetrics } from '#operations/metrics-listener.js';
import { createServer } from './server.js';
import { ApiModule } from './api.module.js';

try {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, exitAfterTimeout);
  const config = readConfig(process.env, 'api');
  await startTracing(config, 'api');
  const app = await createServer(ApiModule.forRoot(config), config);
  await listenForMetrics(config, 'api', app.get(Registry, { strict: false }));
  releaseStartMemory();
  await listen(app, config);
  new Logger('api').log(`listening on ${await app.getUrl()}`);
} catch (error) {
  refuseToStart(error);
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
