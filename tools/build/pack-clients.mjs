import { execFile } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/**
 * Packs the clients as npm and pip install them, so that a running service can offer them at /docs/clients. The same
 * sources result in the same bytes with the same Node.js and npm. It needs neither a network nor Python.
 */

const TARGET = 'docs/clients';
/** The names of the packages in dist, and the hash of what they were packed from. */
export const PACKAGES = `${TARGET}/packages.json`;

const TYPESCRIPT = 'clients/typescript';
const PYTHON = 'clients/python';
const SOURCES = [
  `${TYPESCRIPT}/src`,
  ...['LICENSE', 'README.md', 'mark-commonjs.mjs', 'package.json'].map(
    (name) => `${TYPESCRIPT}/${name}`,
  ),
  ...['tsconfig.json', 'tsconfig.cjs.json'].map((name) => `${TYPESCRIPT}/${name}`),
  `${PYTHON}/src`,
  ...['LICENSE', 'README.md', 'pyproject.toml'].map((name) => `${PYTHON}/${name}`),
];

/** As `npm pack` has for every file: the packages must not depend on when they were made. */
const MODIFIED_AT = new Date(1985, 9, 26, 8, 15);

/** @returns {string[]} what the packages are made from, from the root of the project */
export function listClientSources(root) {
  return SOURCES.flatMap((source) => {
    const full = path.join(root, source);
    if (!fs.existsSync(full)) return [];
    if (fs.statSync(full).isFile()) return [source];
    return listFiles(full)
      .filter((file) => /(\.ts|\.py|[/\\]py\.typed)$/.test(file))
      .map((file) => `${source}/${file}`);
  });
}

/** Packs both clients into dist, unless they were packed from the same sources before. */
export async function packClients(root) {
  const manifest = path.join(root, 'dist', PACKAGES);
  const hash = hashSources(root);
  const existing = fs.existsSync(manifest) ? JSON.parse(fs.readFileSync(manifest, 'utf8')) : {};
  if (existing.hash !== hash) {
    const folder = path.dirname(manifest);
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    const packages = { typescript: await packTypescript(root), python: await packPython(root) };
    for (const { name, content } of Object.values(packages)) {
      fs.writeFileSync(path.join(folder, name), content);
    }
    const { typescript, python } = packages;
    const names = { typescript: typescript.name, python: python.name };
    fs.writeFileSync(manifest, JSON.stringify({ ...names, hash }));
  }
  // A build is fresh when its results are newer than their sources.
  fs.utimesSync(manifest, new Date(), new Date());
}

function hashSources(root) {
  const hash = crypto.createHash('sha256');
  const { version } = readJson(path.join(root, 'node_modules/typescript/package.json'));
  hash.update(`typescript ${version}\0`).update(fs.readFileSync(new URL(import.meta.url)));
  for (const file of listClientSources(root)) {
    const content = fs.readFileSync(path.join(root, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** Builds and packs a copy below dist, where the compiler finds the packages of the project. */
async function packTypescript(root) {
  const folder = path.join(root, 'dist', TARGET, 'build');
  for (const file of listClientSources(root).filter((source) => source.startsWith(TYPESCRIPT))) {
    fs.cpSync(path.join(root, file), path.join(folder, path.relative(TYPESCRIPT, file)));
  }
  const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
  const run = (program, args) => runIn(folder, program, args);
  const node = process.execPath;
  await Promise.all([run(node, [compiler]), run(node, [compiler, '-p', 'tsconfig.cjs.json'])]);
  await run(node, ['mark-commonjs.mjs']);
  // Its scripts would build again.
  await run('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--no-update-notifier']);
  const packed = fs.readdirSync(folder).find((name) => name.endsWith('.tgz'));
  const content = fs.readFileSync(path.join(folder, packed));
  fs.rmSync(folder, { recursive: true });
  const { version } = readJson(path.join(root, TYPESCRIPT, 'package.json'));
  return { name: `inkpad-${version}.tgz`, content };
}

async function runIn(cwd, program, args) {
  try {
    await promisify(execFile)(program, args, { cwd });
  } catch (error) {
    const output = `${error.stdout ?? ''}${error.stderr ?? ''}`;
    throw new Error(`${program} ${args.join(' ')}: ${error.message}\n${output}`, { cause: error });
  }
}

/** Creates a wheel: a zip file of the modules and of what pyproject.toml says (PyPA, "Binary distribution format"). */
async function packPython(root) {
  const { zipSync } = await import('fflate');
  const read = (file) => fs.readFileSync(path.join(root, PYTHON, file));
  const project = readProject(read('pyproject.toml').toString());
  const distribution = `${project.text('name').replaceAll(/[-_.]+/g, '_')}-${project.text('version')}`;
  const info = `${distribution}.dist-info`;
  const modules = listClientSources(root)
    .filter((file) => file.startsWith(`${PYTHON}/src/`))
    .map((file) => path.posix.relative(PYTHON, file));
  const files = {
    ...Object.fromEntries(modules.map((file) => [path.posix.relative('src', file), read(file)])),
    [`${info}/licenses/LICENSE`]: read('LICENSE'),
    [`${info}/METADATA`]: Buffer.from(renderMetadata(project, read('README.md').toString())),
    [`${info}/WHEEL`]: Buffer.from(
      'Wheel-Version: 1.0\nGenerator: inkpad\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    ),
  };
  const record = Object.entries(files).map(([name, content]) => {
    const digest = crypto.createHash('sha256').update(content).digest('base64url');
    return `${name},sha256=${digest},${content.length}\n`;
  });
  files[`${info}/RECORD`] = Buffer.from(`${record.join('')}${info}/RECORD,,\n`);
  const content = zipSync(files, { level: 9, mtime: MODIFIED_AT });
  return { name: `${distribution}-py3-none-any.whl`, content };
}

function renderMetadata({ text, list }, readme) {
  const fields = [
    ['Metadata-Version', '2.4'],
    ['Name', text('name')],
    ['Version', text('version')],
    ['Summary', text('description')],
    ['License-Expression', text('license')],
    ['Keywords', list('keywords').join(',')],
    ...list('classifiers').map((classifier) => ['Classifier', classifier]),
    ['Requires-Python', text('requires-python')],
    ['Description-Content-Type', 'text/markdown'],
    ...list('license-files').map((license) => ['License-File', license]),
    ...list('dependencies').map((dependency) => ['Requires-Dist', dependency]),
  ];
  return `${fields.map(([name, value]) => `${name}: ${value}\n`).join('')}\n${readme}`;
}

/** Reads the table [project] of pyproject.toml, whose texts and lists are written as in JSON. */
function readProject(toml) {
  const table = /^\[project\]$([^]*?)^\[/m.exec(toml)?.[1] ?? '';
  const find = (name, value) => {
    const match = new RegExp(`^${name} = (${value})$`, 'm').exec(table);
    if (!match)
      throw new Error(`pyproject.toml has no ${name}, or it is written in an unusual way`);
    return JSON.parse(match[1].replace(/,\s*\]$/, ']'));
  };
  return { text: (name) => find(name, '".*"'), list: (name) => find(name, '\\[[^\\]]*\\]') };
}

/** @returns {string[]} the files in a folder and below, sorted, with / on every system */
function listFiles(folder, prefix = '') {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(path.relative(folder, entry.parentPath), entry.name))
    .map((file) => path.posix.join(prefix, file.split(path.sep).join('/')))
    .sort();
}

function readJson(file) {
  return JSON.parse(fs.readFileSync(file, 'utf8'));
}
