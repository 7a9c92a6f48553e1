import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import v8 from 'node:v8';
import { endWithParent } from './npm-parent.mjs';
import { printFailure } from './log-lines.mjs';
import { StartFailure, describeInOneSentence } from './start-failure.mjs';
import { loadEmbeddedRun, loadEnvironment, readSettings } from './start-settings.mjs';

/** Runs a command with the settings of .env, as `npm start` has them: inkpad COMMAND [arguments] */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** They refuse while api and dispatcher run, with which the database of npm start would end. */
const withoutServices = new Set(['move-events', 'rebase-positions', 'restore']);

const [, , name = '', ...args] = process.argv;
const command = `inkpad ${name}`;
let program = getBuilt('cli');

endWithParent();
try {
  await run();
} catch (error) {
  const description = describeInOneSentence(error) ?? describeMissingPart(error);
  printFailure(path.basename(program, '.js'), description ?? error.stack);
  process.exitCode = 1;
}

async function run() {
  if (!fs.existsSync(path.join(root, 'node_modules'))) {
    throw new StartFailure('Its packages are missing: run npm start, or npm ci && npm run build.');
  }
  if (!fs.existsSync(program)) {
    throw new StartFailure('Inkpad has not been built yet: run npm start, or npm run build.');
  }
  const { isProgram, parseProgram } = await import(pathToFileURL(getBuilt('programs')).href);
  const words = process.argv.slice(2);
  if (name === 'help' || words.some((word) => ['-h', '--help'].includes(word))) {
    const [topic] = words.filter((word) => word !== 'help' && !word.startsWith('-'));
    if (isProgram(topic)) parseProgram(topic, ['--help']);
    return load(topic === undefined ? ['help'] : ['help', topic]);
  }
  if (!isProgram(name)) {
    if (name !== '') loadEnvironment(root);
    return load(words);
  }
  // Before anything is read or started for a program that is called wrongly.
  parseProgram(name, args);
  program = getBuilt(name.replace(':', '-'));
  loadEnvironment(root);
  if (withoutServices.has(name) && !readSettings(root).databaseUrl) {
    process.exitCode = await runAlone();
    return;
  }
  // For the threads that it starts, whose memory it does not need.
  if (name === 'verify') v8.setFlagsFromString('--max-semi-space-size=16');
  await load(args);
}

function getBuilt(name) {
  return path.join(root, 'dist', 'apps', 'cli', `${name}.js`);
}

async function load(parameters) {
  process.argv = [process.execPath, program, ...parameters];
  await import(pathToFileURL(program).href);
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
