import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConfigError, readConfig, type Config } from '#kernel/config.js';
import { Log } from '#kernel/log.js';
import { WebhookDispatch } from '#webhooks/webhook-dispatch.service.js';
import { DispatcherModule } from './dispatcher.module.js';

const FINISH_WITHIN_MS = 15_000;

try {
  await run(readConfig(process.env));
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exit(1);
}

async function run(config: Config): Promise<void> {
  // Before anything else: a signal during the start must not cut it off half-way.
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
  const app = await NestFactory.createApplicationContext(DispatcherModule.forRoot(config), {
    logger: new Log(config.logLevel),
    abortOnError: false,
  });
  const log = new Logger('dispatcher');
  const webhooks = app.get(WebhookDispatch);
  webhooks.start();
  log.log('started');
  const signal = await asked;
  const left = await webhooks.stop(FINISH_WITHIN_MS);
  await app.close();
  log.log(`stopped by ${signal}${left > 0 ? `; ${left} deliveries will be sent again` : ''}`);
  // Attempts that were left behind may still hold sockets open.
  process.exit(0);
}
