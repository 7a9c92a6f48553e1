import { readConfig } from '#configuration/config.js';
import { migrate } from '#platform/database/migrate.js';
import { migrations } from '../schema/migrations.js';
import { parseProgram } from './programs.js';
import { runProgram, printInstallation } from './run-program.js';

parseProgram('migrate');
runProgram(async () => {
  const config = readConfig(process.env, 'migrate');
  printInstallation({ ...config, databaseUrl: config.databaseMigrationUrl });
  const done = await migrate(config, migrations);
  console.log(done.length > 0 ? `migrated: ${done.join(', ')}` : 'the database is up to date');
});
