import { Logger, run } from 'graphile-worker';
import { preset, TASK } from './graphile-settings.mjs';
import { configured, poster } from './peer-post.mjs';

const config = await configured();
const post = poster(config.endpoints);
// It would log a line per job; a production log would keep only errors as well.
const logger = new Logger(() => (level, message) => {
  if (level === 'error') console.error(`graphile: ${message}`);
});
await run({
  preset: { ...preset(config), worker: { ...preset(config).worker, logger } },
  taskList: { [TASK]: async (delivery) => void (await post(delivery)) },
});
process.send({ ready: true });
