import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endWithParent } from './npm-parent.mjs';
import { printFailure } from './log-lines.mjs';
import { Refusal, describeInOneSentence } from './processes.mjs';
import { loadEmbeddedRun, readSettings } from './start-settings.mjs';

/** `npm run restore`: into DATABASE_URL, or into the data folder of `npm start`, whose database it starts meanwhile. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const program = path.join(root, 'dist/scripts/restore.js');
const command = 'npm run restore';

async function main(args) {
  const settings = readSettings(root);
  if (!fs.existsSync(program))
    throw new Refusal('Inkpad is not built: run npm ci && npm run build first.');
  const [folder, ...more] = args;
  if (settings.databaseUrl || !folder || folder.startsWith('-') || more.length > 0) {
    // In this process: killed, it leaves no other behind.
    process.argv = [process.execPath, program, ...args];
    await import(pathToFileURL(program).href);
    return process.exitCode;
  }
  const { runOnDataFolder, runProgramOnData, stopOnSignals } = await loadEmbeddedRun();
  const signal = stopOnSignals();
  // Before a folder is made for it.
  const checkArgs = [...args, '--check'];
  const code = await runProgramOnData({ program, args: checkArgs, command, signal });
  if (code !== 0) return code;
  const intoFolder = [...args, '--into-data-folder'];
  return runOnDataFolder({ program, args: intoFolder, command, settings, mayBeNew: true });
}

endWithParent();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  printFailure('restore', describeInOneSentence(error) ?? error.stack);
  process.exitCode = 1;
}
