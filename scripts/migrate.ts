import { readConfig } from '#kernel/config.js';
import { migrate } from '#database/data-source.js';
import { runScript } from './run-script.js';

runScript(async () => {
  const done = await migrate(readConfig(process.env));
  console.log(done.length > 0 ? `migrated: ${done.join(', ')}` : 'the database is up to date');
});
