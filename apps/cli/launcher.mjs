import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import v8 from 'node:v8';
import { endWithParent } from './npm-parent.mjs';
import { printFailure } from './log-lines.mjs';
import { Refusal, describeInOneSentence } from './failure.mjs';
import { loadEmbeddedRun, loadEnvironment, readSettings } from './start-settings.mjs';

/** Runs a command with the settings of .env, as `npm start` has them: inkpad COMMAND [arguments] */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** Commands that are programs of their own, in dist; the others are those of cli.ts. */
const PROGRAMS = {
  backup: 'apps/cli/backup.js',
  demo: 'tools/demo/demo.js',
  'demo:shop': 'tools/demo/demo-shop.js',
  'event-store-access': 'apps/cli/event-store-access.js',
  migrate: 'apps/cli/migrate.js',
  'move-events': 'apps/cli/move-events.js',
  'rebase-positions': 'apps/cli/rebase-positions.js',
  rebuild: 'apps/cli/rebuild.js',
  restore: 'apps/cli/restore.js',
  verify: 'apps/cli/verify.js',
  'webhooks:listen': 'apps/cli/webhooks-listen.js',
};
// --help must not run the program.
const withoutArguments = ['demo', 'demo:shop', 'migrate', 'rebase-positions'];
// They refuse while api and dispatcher run, with which the database of npm start would end.
const withoutServices = ['move-events', 'rebase-positions', 'restore'];

const [, , name, ...rest] = process.argv;
const isProgram = Object.hasOwn(PROGRAMS, name);
const program = path.join(root, 'dist', isProgram ? PROGRAMS[name] : 'apps/cli/cli.js');
const args = isProgram ? rest : process.argv.slice(2);
const command = `inkpad ${name}`;

endWithParent();
try {
  if (withoutArguments.includes(name) && args.length > 0) {
    throw new Refusal(`Usage: ${command} (it takes no arguments; docs/operating.md)`);
  }
  loadEnvironment(root);
  if (!fs.existsSync(path.join(root, 'node_modules'))) {
    throw new Refusal('Its packages are missing: run npm start, or npm ci && npm run build.');
  }
  if (!fs.existsSync(program)) {
    throw new Refusal('Inkpad has not been built yet: run npm start, or npm run build.');
  }
  if (withoutServices.includes(name) && needsDataFolder()) process.exitCode = await runAlone();
  else {
    // For the threads that it starts, whose memory it does not need.
    if (name === 'verify') v8.setFlagsFromString('--max-semi-space-size=16');
    process.argv = [process.execPath, program, ...args];
    await import(pathToFileURL(program).href);
  }
} catch (error) {
  const description = describeInOneSentence(error) ?? describeMissingPart(error);
  printFailure(path.basename(program, '.js'), description ?? error.stack);
  process.exitCode = 1;
}

/** Tells whether the command works on the database of `npm start`. What is called wrongly prints its usage instead. */
function needsDataFolder() {
  const { databaseUrl } = readSettings(root);
  if (name !== 'restore') return !databaseUrl;
  const [folder, ...more] = args;
  return !databaseUrl && folder && !folder.startsWith('-') && more.length === 0;
}

/** Runs the command on the database in the data folder of `npm start`, which it starts meanwhile. */
async function runAlone() {
  const { runOnDataFolder, runProgramOnData, stopOnSignals } = await loadEmbeddedRun();
  const settings = readSettings(root);
  if (name !== 'restore') return runOnDataFolder({ program, args, command, settings });
  // Before a folder is made for it.
  const checkArgs = [...args, '--check'];
  const code = await runProgramOnData({
    program,
    args: checkArgs,
    command,
    signal: stopOnSignals(),
  });
  if (code !== 0) return code;
  const intoFolder = [...args, '--into-data-folder'];
  return runOnDataFolder({ program, args: intoFolder, command, settings, mayBeNew: true });
}

/** @returns {string | null} */
function describeMissingPart({ code, message }) {
  if (code !== 'ERR_MODULE_NOT_FOUND') return null;
  const [missing] = message.split(' imported from ');
  return `Inkpad is not installed and built completely (${missing}): run npm start, or npm ci && npm run build.`;
}
