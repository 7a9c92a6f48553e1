import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runOnDataFolder, runProgramOnData, stopOnSignals } from './embedded-run.mjs';
import { endWithParent } from './npm-parent.mjs';
import { Refusal, describeInOneSentence } from './processes.mjs';
import { readSettings } from './start-settings.mjs';

/** `npm run restore`: into DATABASE_URL, or into the data folder of `npm start`, whose database it starts meanwhile. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const program = path.join(root, 'dist/scripts/restore.js');
const command = 'npm run restore';

async function main(args) {
  const settings = readSettings(root);
  if (!fs.existsSync(program))
    throw new Refusal('Inkpad is not built: run npm ci && npm run build first.');
  const signal = stopOnSignals();
  const run = (more) => runProgramOnData({ program, args: [...args, ...more], command, signal });
  if (settings.databaseUrl || args.length !== 1) return run([]);
  // Before a folder is made for it.
  const code = await run(['--check']);
  if (code !== 0) return code;
  const intoFolder = [...args, '--into-data-folder'];
  return runOnDataFolder({ program, args: intoFolder, command, settings, mayBeNew: true });
}

endWithParent();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(describeInOneSentence(error) ?? error.stack);
  process.exitCode = 1;
}
