import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { listClientSources, packClients, PACKAGES } from './pack-clients.mjs';
import {
  copyViews,
  renderGuides,
  GUIDES,
  listGuides,
  listReceivers,
  listViews,
  watchViews,
} from './views.mjs';
import { Refusal, describeExit, launch, readFileIfExists, readJson } from './processes.mjs';

const sourceFolders = ['apps', 'libs', 'scripts', 'clients/typescript/src'];

/**
 * Builds whatever is missing or stale before a program runs.
 * @param {string} root the folder of package.json
 * @param {boolean} watching the compiler is going to run anyway
 */
export function findWork(root, watching) {
  const build = !watching && needsBuild(root);
  return { build, install: needsInstall(root, build || watching) };
}

/**
 * Tells whether packages have to be installed. npm writes its own lock file last; comparing that with package-lock.json
 * accepts a manual installation and rejects an interrupted one.
 */
function needsInstall(root, withTools) {
  const installed = readJson(path.join(root, 'node_modules', '.package-lock.json'))?.packages;
  if (!installed) return true;
  const locked = readJson(path.join(root, 'package-lock.json'))?.packages;
  if (locked) {
    return Object.entries(locked).some(
      ([place, expected]) =>
        place !== '' &&
        !expected.optional &&
        !expected.devOptional &&
        !(expected.dev && !withTools) &&
        installed[place]?.version !== expected.version,
    );
  }
  const { dependencies, devDependencies } = readJson(path.join(root, 'package.json'));
  const names = Object.keys({ ...dependencies, ...(withTools ? devDependencies : {}) });
  return names.some((name) => !installed[`node_modules/${name}`]);
}

function needsBuild(root) {
  const marker = readFileIfExists(getMarkerPath(root));
  if (marker !== null) return marker !== hashSources(root);
  // A manual build leaves no marker, but all its files are newer than their sources.
  const sources = listSources(root);
  const packed = listClientSources(root).map((file) => path.join(root, file));
  const isFresh =
    sources.every((file) => isBuilt(root, file)) &&
    packed.every((file) => isNewer(root, PACKAGES, file));
  if (!isFresh) return true;
  fs.writeFileSync(getMarkerPath(root), hashSources(root));
  return false;
}

/** Returns the path of the marker that `npm start` leaves after a build. */
export function getMarkerPath(root) {
  return path.join(root, 'dist', '.built');
}

function listSources(root) {
  const { exclude = [] } = readJson(path.join(root, 'tsconfig.build.json')) ?? {};
  const left = ['.d.ts', ...exclude.map((pattern) => pattern.replace(/^\*\*\/\*/, ''))];
  const compiled = sourceFolders
    .map((folder) => path.join(root, folder))
    .filter((folder) => fs.existsSync(folder))
    .flatMap((folder) => listFiles(folder))
    .filter((file) => /\.(ts|json)$/.test(file) && !left.some((end) => file.endsWith(end)));
  const drawn = [...listViews(root), ...listGuides(root), ...listReceivers(root)].map((file) =>
    path.join(root, file),
  );
  return [...compiled, ...drawn];
}

function listFiles(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    return entry.isDirectory() ? listFiles(full) : [full];
  });
}

function isBuilt(root, source) {
  const file = path.relative(root, source);
  const isRendered = file.endsWith('.md') || listReceivers(root).includes(file);
  const target = isRendered ? GUIDES : file.replace(/\.ts$/, '.js');
  return isNewer(root, target, source);
}

/** @param {string} target in dist */
function isNewer(root, target, source) {
  const built = fs.statSync(path.join(root, 'dist', target), { throwIfNoEntry: false });
  return built !== undefined && built.mtimeMs >= fs.statSync(source).mtimeMs;
}

function hashSources(root) {
  const settings = fs
    .readdirSync(root)
    .filter((name) => /^(tsconfig.*|package(-lock)?)\.json$/.test(name))
    .map((name) => path.join(root, name));
  const packed = listClientSources(root).map((file) => path.join(root, file));
  const hash = crypto.createHash('sha256');
  for (const file of [...new Set([...listSources(root), ...packed, ...settings])].sort()) {
    const content = fs.readFileSync(file);
    hash.update(`${path.relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/**
 * @typedef {{ root: string, dataDir: string, say: (line: string) => void, signal: AbortSignal,
 *   onStep: (step: { pid?: number, birth?: string | null } | null) => void }} Context
 */

/** @param {Context} around */
export async function install(around) {
  const locked = fs.existsSync(path.join(around.root, 'package-lock.json'));
  // The compiler is a development dependency, which npm omits when NODE_ENV is production.
  const args = [locked ? 'ci' : 'install', '--include=dev'];
  around.say(`installing packages (npm ${args[0]}; the first time takes about a minute) …`);
  await runNpm(around, args, 'install.log');
}

/** @param {Context} around */
export async function build(around) {
  around.say('building …');
  // Computed first: edits made during the build are not in it.
  const hash = hashSources(around.root);
  await runNpm(around, ['run', 'build'], 'build.log');
  fs.writeFileSync(getMarkerPath(around.root), hash);
}

async function runNpm({ root, dataDir, signal, onStep }, args, logName) {
  const logFile = path.join(dataDir, logName);
  const log = fs.openSync(logFile, 'w', 0o600);
  const npm = launch('npm', args, { cwd: root, env: process.env, output: log, signal });
  fs.closeSync(log);
  onStep(npm);
  const end = await npm.result;
  onStep(null);
  if (end.code === 0) return;
  const what = end.error?.code === 'ENOENT' ? 'npm was not found' : describeExit(end);
  throw new Refusal(`"npm ${args.join(' ')}" failed (${what}); see ${logFile}.`);
}

/**
 * Recompiles whenever a source changes.
 * @param {{ root: string, say: (line: string) => void, onRebuilt: () => void }} options
 *   the first compilation without errors resolves `ready`; `onRebuilt` is called after each later one
 */
export function watchBuild({ root, say, onRebuilt }) {
  fs.rmSync(getMarkerPath(root), { force: true });
  const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  copyViews(root);
  void renderGuides(root);
  const packed = packClients(root);
  packed.catch(() => undefined);
  watchViews(root, onRebuilt);
  let onFirst = () => {};
  let wasGood = false;
  let settle;
  const watcher = launch(
    process.execPath,
    [compiler, '-p', 'tsconfig.build.json', '--watch', '--preserveWatchOutput'],
    {
      cwd: root,
      env: process.env,
      output: (line) => {
        if (line.trim() !== '') say(line);
        clearTimeout(settle);
        if (!/Found 0 errors\. Watching/.test(line)) return;
        if (!wasGood) onFirst();
        // Editors save several files at once, each of which may trigger a compilation.
        else settle = setTimeout(onRebuilt, 300);
        wasGood = true;
      },
    },
  );
  const ready = new Promise((resolve, reject) => {
    onFirst = () => packed.then(resolve, reject);
    watcher.exited.then((how) => {
      clearTimeout(settle);
      reject(
        new Refusal(`The compiler exited (${describeExit(how)}); run "npm run build" for details.`),
      );
    });
  });
  return { watcher, ready };
}
