import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endWithParent } from './npm-parent.mjs';
import { printFailure } from './log-lines.mjs';
import { Refusal, describeInOneSentence } from './processes.mjs';
import { loadEmbeddedRun, loadEnvironment, readSettings } from './start-settings.mjs';

/** Runs a built script with the settings of .env, as `npm start` has them: node scripts/run.mjs NAME [arguments] */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [, , name, ...args] = process.argv;
const file = path.join(root, 'dist', 'scripts', `${name}.js`);
// --help must not run the script.
const withoutArguments = ['demo', 'demo-shop', 'migrate', 'rebase-positions'];
// They refuse while api and dispatcher run, with which the database of npm start would end.
const withoutServices = ['move-events', 'rebase-positions'];

endWithParent();
try {
  if (withoutArguments.includes(name) && args.length > 0) {
    throw new Refusal(`Usage: npm run ${name} (it takes no arguments; docs/operating.md)`);
  }
  loadEnvironment(root);
  if (!fs.existsSync(path.join(root, 'node_modules'))) {
    throw new Refusal('Its packages are missing: run npm start, or npm ci && npm run build.');
  }
  if (!fs.existsSync(file)) {
    throw new Refusal('Inkpad has not been built yet: run npm start, or npm run build.');
  }
  if (withoutServices.includes(name) && !readSettings(root).databaseUrl) await runAlone();
  else {
    process.argv = [process.execPath, file, ...args];
    await import(pathToFileURL(file).href);
  }
} catch (error) {
  const description = describeInOneSentence(error) ?? describeMissingPart(error);
  printFailure(name, description ?? error.stack);
  process.exitCode = 1;
}

async function runAlone() {
  const { runOnDataFolder } = await loadEmbeddedRun();
  const settings = readSettings(root);
  const command = `npm run ${name}`;
  process.exitCode = await runOnDataFolder({ program: file, args, command, settings });
}

/** @returns {string | null} */
function describeMissingPart({ code, message }) {
  if (code !== 'ERR_MODULE_NOT_FOUND') return null;
  const [missing] = message.split(' imported from ');
  return `Inkpad is not installed and built completely (${missing}): run npm start, or npm ci && npm run build.`;
}
