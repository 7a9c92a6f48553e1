import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { ConfigError, readConfig } from '#kernel/config.js';
import { stopInTime } from '#kernel/stop.js';
import { startTracing } from '#kernel/tracing.js';
import { listenForMetrics } from '#operations/metrics-listener.js';
import { createServer } from './server.js';
import { ApiModule } from './api.module.js';

try {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopInTime);
  const config = readConfig(process.env);
  await startTracing(config, 'api');
  const app = await createServer(ApiModule.forRoot(config), config);
  await listenForMetrics(config, 'api', app.get(Registry, { strict: false }));
  await app.listen(config.port, config.host);
  new Logger('api').log(`listening on ${await app.getUrl()}`);
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exit(1);
}
