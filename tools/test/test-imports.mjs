import fs from 'node:fs';
import path from 'node:path';

const IMPORT = /^(?:import|export) (?!type)[^;]*?from '(\.[^']+)';$/gms;

/** Adds a file, by its path from the root of the clone, to those that it and they import, direct or not. */
export function addImports(file, files = new Set()) {
  if (files.has(file)) return files;
  files.add(file);
  for (const name of listImports(file)) addImports(name, files);
  return files;
}

/** @returns {string[]} the files of the tests that a file imports, types alone left out */
function listImports(file) {
  return [...fs.readFileSync(file, 'utf8').matchAll(IMPORT)].flatMap(([, name]) => {
    const target = path.join(path.dirname(file), name).replace(/\.js$/, '.ts');
    return fs.existsSync(target) ? [target] : [];
  });
}

/** Lists the files of tests that start a service, by their paths. */
export function listSuites() {
  return fs
    .readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('-spec.ts') && !file.startsWith('support/'))
    .map((file) => path.join('test', file))
    .sort();
}
