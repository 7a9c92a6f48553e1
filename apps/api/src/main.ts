import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { ConfigError, readConfig } from '#kernel/config.js';
import { listenForMetrics } from '#http/metrics-listener.js';
import { createServer } from '#http/server.js';
import { portOf } from '#http/side-listener.js';
import { ApiModule } from './api.module.js';

try {
  const config = readConfig(process.env);
  const app = await createServer(ApiModule.forRoot(config), config);
  const metrics = await listenForMetrics(config, 'api', app.get(Registry, { strict: false }));
  await app.listen(config.port, config.host);
  new Logger('api').log(`listening on ${await app.getUrl()}; metrics on port ${portOf(metrics)}`);
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exit(1);
}
