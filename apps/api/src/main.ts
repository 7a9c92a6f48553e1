import { Logger } from '@nestjs/common';
import { ConfigError, readConfig } from '#kernel/config.js';
import { createServer } from '#http/server.js';
import { ApiModule } from './api.module.js';

try {
  const config = readConfig(process.env);
  const app = await createServer(ApiModule.forRoot(config), config);
  await app.listen(config.port, config.host);
  new Logger('api').log(`listening on ${await app.getUrl()}`);
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error);
  process.exit(1);
}
