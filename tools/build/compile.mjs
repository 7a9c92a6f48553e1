import fs from 'node:fs';
import path from 'node:path';
import { watch } from './views.mjs';

/** Folders whose sources swc compiles into dist, each file for itself. `npm run check` checks types. */
export const SERVICE = ['apps', 'libs', 'tools'];
export const CLIENT = ['clients/typescript/src'];
const FOLDERS = [...SERVICE, ...CLIENT];
const SOURCE = /(?<![.](?:d|spec|contract))[.]ts$/;

/** The compiler's options, which the tests use as well. */
export const COMPILER_OPTIONS = {
  jsc: {
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
    target: 'es2022',
  },
  module: { type: 'es6' },
};

/** @returns {string[]} the files that are compiled, from the root of the project */
export function listSources(root, folders = FOLDERS) {
  return folders
    .filter((folder) => fs.existsSync(path.join(root, folder)))
    .flatMap((folder) =>
      listFiles(path.join(root, folder), SOURCE).map((file) => path.join(folder, file)),
    );
}

/**
 * Compiles the sources of these folders, which takes less than a second, and removes what has no source any more.
 * @throws {Error} with the compiler's messages, which name files and lines
 */
export async function compile(root, folders = FOLDERS) {
  // Imported only now: the first start installs it.
  const { default: swc } = await import('@swc/core');
  const results = await Promise.allSettled(
    listSources(root, folders).map(async (file) => {
      const source = path.join(root, file);
      const target = path.join(root, 'dist', file.replace(/ts$/, 'js'));
      const { code, map } = await swc.transformFile(source, {
        ...COMPILER_OPTIONS,
        swcrc: false,
        configFile: false,
        sourceFileName: path.relative(path.dirname(target), source),
        sourceMaps: true,
      });
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.writeFileSync(`${target}.map`, map);
      fs.writeFileSync(target, `${code}//# sourceMappingURL=${path.basename(target)}.map\n`);
    }),
  );
  for (const folder of folders) removeOrphans(root, folder);
  const failures = results.filter(({ status }) => status === 'rejected');
  if (failures.length > 0) throw new Error(failures.map(({ reason }) => reason.message).join('\n'));
}

/**
 * @param {() => void} onChanged after each change of a source
 * @param {AbortSignal} signal
 */
export function watchSources(root, onChanged, signal) {
  for (const folder of FOLDERS) watch(path.join(root, folder), SOURCE, onChanged, signal);
}

/** Removes what was compiled from sources that are gone: a program might load it. */
function removeOrphans(root, folder) {
  const built = path.join(root, 'dist', folder);
  if (!fs.existsSync(built)) return;
  for (const file of listFiles(built, /[.]js$/)) {
    if (fs.existsSync(path.join(root, folder, file))) continue;
    if (fs.existsSync(path.join(root, folder, file.replace(/js$/, 'ts')))) continue;
    for (const name of [file, `${file}.map`]) fs.rmSync(path.join(built, name), { force: true });
  }
}

function listFiles(folder, pattern) {
  return fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => pattern.test(file));
}
