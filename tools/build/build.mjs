import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { CLIENT, SERVICE, compile, listSources, watchSources } from './compile.mjs';
import { listClientSources, packClients } from './pack-clients.mjs';
import {
  copyViews,
  renderGuides,
  listGuides,
  listReceivers,
  listViews,
  watchViews,
} from './views.mjs';
import { StartFailure } from '../../apps/cli/start-failure.mjs';
import {
  describeExit,
  getStartTime,
  launch,
  readJson,
  writeJson,
} from '../../apps/cli/processes.mjs';

/** The sources of the clients that the build generates from openapi.json. Git ignores them. */
const GENERATED = [
  ...['error-classes', 'operations', 'schema'].map((name) => `clients/typescript/src/${name}.ts`),
  ...['async_operations', 'error_classes', 'models', 'operations'].map(
    (name) => `clients/python/src/inkpad/${name}.py`,
  ),
];

/**
 * Finds what is missing or stale before a program runs.
 * @param {string} root the folder of package.json
 * @param {boolean} withTools whether packages that only tests and checks need have to be there too
 */
export function findWork(root, withTools) {
  const built = readState(root);
  return {
    build: built?.sources !== hashSources(root) || built.generated !== hashGenerated(root),
    install: needsInstall(root, withTools),
  };
}

/**
 * Tells whether packages have to be installed. npm writes its own lock file last; comparing that with package-lock.json
 * accepts a manual installation and rejects an interrupted one.
 */
function needsInstall(root, withTools) {
  const installed = readInstalled(root);
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

function readInstalled(root) {
  return readJson(path.join(root, 'node_modules', '.package-lock.json'))?.packages;
}

const getStatePath = (root) => path.join(root, 'dist', '.built.json');

/** Reads the hashes of what the last build was made from. */
function readState(root) {
  return readJson(getStatePath(root));
}

const listDocuments = (root) => [...listGuides(root), ...listReceivers(root)];

function hashSources(root) {
  const files = [...listSources(root), ...listViews(root), ...listClientSources(root)];
  const written = files.filter((file) => !GENERATED.includes(file));
  return hashFiles(root, [...written, ...listDocuments(root), 'openapi.json']);
}

/** Hashes the generated sources: a checkout of an older commit replaces them, and leaves none behind. */
function hashGenerated(root) {
  return hashFiles(
    root,
    GENERATED.filter((file) => fs.existsSync(path.join(root, file))),
  );
}

function hashFiles(root, files) {
  const tools = [
    'package.json',
    'package-lock.json',
    ...['compile.mjs', 'guides.mjs', 'views.mjs'].map((name) => `tools/build/${name}`),
  ];
  const hash = crypto.createHash('sha256');
  for (const file of [...new Set([...files, ...tools])].sort()) {
    const content = fs.readFileSync(path.join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Builds into dist what programs need, if its sources have changed since the last build. */
export async function buildService(root) {
  // Computed first: edits made during the build are not in it.
  const sources = hashSources(root);
  const documents = hashFiles(root, listDocuments(root));
  const before = readState(root);
  fs.rmSync(getStatePath(root), { force: true });
  await compile(root, SERVICE);
  await generateClients(root);
  await compile(root, CLIENT);
  copyViews(root);
  await Promise.all([
    packClients(root),
    before?.documents === documents ? undefined : renderGuides(root),
  ]);
  const generated = hashGenerated(root);
  fs.writeFileSync(getStatePath(root), JSON.stringify({ sources, documents, generated }));
}

/** Generates the sources of the clients. Writes only what is new, since editors and compilers read it again. */
async function generateClients(root) {
  const { href } = pathToFileURL(path.join(root, 'dist/tools/generate/client-sources.js'));
  const { renderClientSources } = await import(href);
  const { version } = readJson(path.join(root, 'package.json'));
  const texts = renderClientSources(readJson(path.join(root, 'openapi.json')), version);
  for (const file of GENERATED) {
    const target = path.join(root, file);
    const isCurrent = fs.existsSync(target) && fs.readFileSync(target, 'utf8') === texts[file];
    if (!isCurrent) fs.writeFileSync(target, texts[file]);
  }
}

/**
 * @typedef {{ root: string, dataDir: string, say: (line: string) => void, signal: AbortSignal,
 *   onStep: (step: { pid?: number, birth?: string | null } | null) => void }} Context
 */

/** The processes that run from the packages, by their ids. */
const getUsersPath = (root) => path.join(root, 'node_modules', '.inkpad-users');

/**
 * Keeps the packages from being replaced while this process runs from them, PostgreSQL among them.
 * @returns {() => void} ends that
 */
export function usePackages(root) {
  const file = path.join(getUsersPath(root), String(process.pid));
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    writeJson(file, { birth: getStartTime(process.pid) });
  } catch (error) {
    // Whoever may not write there cannot replace them either.
    if (!['EACCES', 'EROFS'].includes(error.code)) throw error;
  }
  return () => fs.rmSync(file, { force: true });
}

/** @returns {number | undefined} the id of a process that runs from the packages */
function findPackageUser(root) {
  const folder = getUsersPath(root);
  if (!fs.existsSync(folder)) return undefined;
  const ids = fs.readdirSync(folder).map(Number);
  return ids.find((id) => getStartTime(id) === readJson(path.join(folder, String(id)))?.birth);
}

/**
 * Installs what is missing. On a fresh clone, a start installs only what the service runs and is built with.
 * @param {Context} around
 * @param {boolean} withTools
 * @throws StartFailure while a service runs from the packages: npm removes them before it installs them
 */
export async function install(around, withTools) {
  const user = findPackageUser(around.root);
  if (user !== undefined) {
    throw new StartFailure(
      `Packages have to be installed, and an Inkpad runs from those in ${around.root} (process ${user}): stop that one first.`,
    );
  }
  const locked = fs.existsSync(path.join(around.root, 'package-lock.json'));
  const isFresh = readInstalled(around.root) === undefined;
  // npm omits development dependencies by itself when NODE_ENV is production.
  const scope = isFresh && !withTools ? '--omit=dev' : '--include=dev';
  const args = [locked ? 'ci' : 'install', scope];
  around.say(`installing packages (npm ${args[0]}; the first time takes about a minute) …`);
  await runNpm(around, args, 'install.log');
}

/** @param {Context} around */
export async function build(around) {
  around.say('building …');
  await runNpm(around, ['run', 'build'], 'build.log');
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
  throw new StartFailure(`"npm ${args.join(' ')}" failed (${what}); see ${logFile}.`);
}

/**
 * Compiles and copies whenever a source changes, until the signal.
 * @param {{ root: string, say: (line: string) => void, onRebuilt: () => void, signal: AbortSignal }} options
 */
export function watchBuild({ root, say, onRebuilt, signal }) {
  const onChanged = () =>
    compile(root).then(onRebuilt, ({ message }) => {
      for (const line of message.split('\n')) say(line);
    });
  // What is built from now on is not what the last build was made from: sources may return to that.
  fs.rmSync(getStatePath(root), { force: true });
  watchViews(root, onRebuilt, signal);
  watchSources(root, onChanged, signal);
}
