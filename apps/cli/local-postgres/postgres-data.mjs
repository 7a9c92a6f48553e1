import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {
  chooseAccount,
  canEnter,
  getEnvironment,
  isRoot,
  placePrograms,
  createRootFolder,
} from './postgres-programs.mjs';
import { StartFailure } from '../start-failure.mjs';
import {
  describeExit,
  launch,
  listProcesses,
  createFolder,
  readFileIfExists,
  readJson,
  sendSignal,
  waitUntil,
  writeJson,
} from '../processes.mjs';

export const databaseName = 'inkpad';
/** Makes the server and owns the tables. */
export const ownerName = 'inkpad';
/** The role that the programs connect as; inkpad migrate creates it with the tables. */
export const serviceName = 'inkpad_app';

/** @param {string} dataDir @returns {string} its real path */
export function createDataDir(dataDir) {
  try {
    // As root, PostgreSQL's own user must be able to pass through it; each file inside is protected by itself.
    createFolder(dataDir, isRoot() ? 0o711 : 0o700);
    const home = fs.realpathSync(dataDir);
    fs.readdirSync(home);
    fs.accessSync(home, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
    return home;
  } catch (error) {
    throw new StartFailure(
      `The data folder ${dataDir} cannot be written (${error.code}); make it writable or choose another one with DATA_DIR.`,
    );
  }
}

/** Finds out where the data is or will be, which programs to use, and which user to run them as. */
export function locate(home, log) {
  const recordFile = path.join(home, 'postgres.json');
  const previous = readJson(recordFile);
  const inside = path.join(home, 'postgres');
  let data = previous ? path.resolve(home, previous.data) : inside;
  const account = isRoot() ? chooseAccount(data) : {};
  if (!previous && !canEnter(account, home))
    data = path.join(createRootFolder(), hashText(home), 'postgres');
  const record = previous ?? {
    data: data === inside ? 'postgres' : data,
    password: createPassword(),
    port: null,
    completed: null,
  };
  // Folders that were made when there was one role for everything have none.
  record.service_password ??= createPassword();

  const owner = fs.existsSync(data) ? fs.statSync(data).uid : null;
  if (!isRoot() && owner !== null && owner !== process.getuid()) {
    throw new StartFailure(
      `The database in ${data} belongs to another user (uid ${owner}); start Inkpad as that user or as root.`,
    );
  }
  if (previous?.completed && owner === null) {
    throw new StartFailure(
      `The database should be in ${data}, which no longer exists; restore it, or remove ${recordFile} to begin with an empty one.`,
    );
  }
  const around = path.dirname(data);
  const outside = data !== inside;
  if (outside) createFolder(around, 0o711);
  if (!canEnter(account, around)) {
    throw new StartFailure(
      `The database in ${data} cannot be reached by the user that it must run as (uid ${account.uid}); move the data folder back to where it was, or let that user pass through the folders above it.`,
    );
  }
  if (!previous) moveUnusableDataAway(data, outside, recordFile, log);
  const { native, version } = placePrograms(account);
  return {
    home,
    recordFile,
    record,
    data,
    outside,
    account,
    major: version.split('.')[0],
    initdb: path.join(native, 'bin', 'initdb'),
    postgres: path.join(native, 'bin', 'postgres'),
    cluster: getClusterPaths(data),
  };
}

/**
 * Creates a database next to its final place and renames it when complete, so that whatever is in that place is
 * complete.
 */
export async function createDatabase(server, settings, log, signal) {
  const { data, account, record } = server;
  const fresh = `${data}.new`;
  const passwordFile = `${fresh}.password`;
  writeJson(server.recordFile, record);
  if (!fs.existsSync(data) || fs.readdirSync(data).length === 0) {
    if (fs.existsSync(fresh)) {
      await stopInitdb(server, fresh);
      await removeInUse(fresh);
      log('The first start was interrupted while it created the database; creating it again.');
    }
    log('creating the database …');
    const quick = settings.fsync === 'off';
    try {
      fs.mkdirSync(fresh, { mode: 0o700 });
      fs.writeFileSync(passwordFile, record.password, { mode: 0o600 });
      if (isRoot()) {
        fs.chownSync(fresh, account.uid, account.gid);
        fs.chownSync(passwordFile, account.uid, account.gid);
      }
      const making = ['--encoding=UTF8', '--locale=C', '--auth=scram-sha-256', '--no-instructions'];
      const owner = [`--username=${ownerName}`, `--pwfile=${passwordFile}`];
      if (quick) making.push('--no-sync');
      await runTool(server, signal, server.initdb, ['-D', fresh, ...owner, ...making]);
      await runTool(
        server,
        signal,
        server.postgres,
        ['--single', '-D', fresh, ...(quick ? ['-F'] : []), 'template1'],
        `CREATE DATABASE ${databaseName};\n`,
      );
    } finally {
      fs.rmSync(passwordFile, { force: true });
    }
    fs.renameSync(fresh, data);
    syncFolder(path.dirname(data));
  }
  record.completed = new Date().toISOString();
  writeJson(server.recordFile, record);
}

export function checkCompleted({ data, major }) {
  const version = readFileIfExists(path.join(data, 'PG_VERSION'))?.trim();
  if (version === major && fs.existsSync(path.join(data, 'global', 'pg_control'))) return;
  throw new StartFailure(
    version && version !== major
      ? `The database in ${data} was created by PostgreSQL ${version}, but this version of Inkpad comes with PostgreSQL ${major}; migrate the data with pg_dump, or go back to the version of Inkpad that created it.`
      : `The database in ${data} is damaged (${version ? 'global/pg_control' : 'PG_VERSION'} is missing); nothing was changed; restore it from a backup.`,
  );
}

export function getClusterPaths(data) {
  return `inkpad-${hashText(data)}`;
}

function createPassword() {
  return crypto.randomBytes(24).toString('base64url');
}

export function hashText(text) {
  return crypto.createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Moves data away that cannot be used, since there is no record of it, but must not be lost either. */
function moveUnusableDataAway(data, outside, recordFile, log) {
  if (!fs.existsSync(data) || fs.readdirSync(data).length === 0) return;
  const whole = ['PG_VERSION', 'global/pg_control'].every((file) =>
    fs.existsSync(path.join(data, file)),
  );
  if (whole && !outside) {
    throw new StartFailure(
      `${data} holds a database, but ${recordFile} with its password is missing; restore that file, or move the database elsewhere.`,
    );
  }
  const aside = `${data}-aside-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
  fs.renameSync(data, aside);
  log(
    whole
      ? `The database of an earlier data folder was moved to ${aside}; a new one is created.`
      : `A database that was never completed was moved to ${aside}; a new one is created.`,
  );
}

/** Stops an initdb that outlived its killed starter: it would write into the folder while it is being removed. */
async function stopInitdb(server, fresh) {
  const making = () =>
    listProcesses().filter(
      ({ command }) =>
        command.startsWith(`${server.initdb} -D ${fresh} `) ||
        command.startsWith(`${server.postgres} --single -D ${fresh} `),
    );
  for (const { pid } of making()) sendSignal(pid, 'SIGKILL');
  await waitUntil(() => making().length === 0, { patience: 5_000 });
}

/** Removes a folder that children of a killed initdb may use for another moment. */
async function removeInUse(folder) {
  const doomed = `${folder}.${crypto.randomBytes(4).toString('hex')}`;
  fs.renameSync(folder, doomed);
  try {
    // The pauses grow by 50 ms: 10 s for a folder.
    await fs.promises.rm(doomed, { recursive: true, maxRetries: 20, retryDelay: 50 });
  } catch (error) {
    if (error.code !== 'ENOTEMPTY') throw error;
    throw new StartFailure(`${doomed} is still being written to and cannot be removed.`);
  }
}

async function runTool(server, signal, program, args, input) {
  const lines = [];
  const child = launch(program, args, {
    ...server.account,
    cwd: path.dirname(server.data),
    env: getEnvironment(),
    input,
    signal,
    output: (line) => lines.push(line),
  });
  const end = await child.result;
  // In single-user mode a failed statement leaves the exit code at 0.
  const troubles = lines.filter((line) => /\b(error|FATAL|PANIC|ERROR):/.test(line));
  // A full disk makes PostgreSQL fail at more, and what it says last is then no reason.
  const trouble = troubles.find((line) => line.includes('No space left')) ?? troubles.at(-1);
  if (end.code === 0 && !trouble) return;
  throw new StartFailure(
    `The database could not be created in ${server.data}: ${trouble ?? lines.at(-1) ?? describeExit(end)}`,
  );
}

function syncFolder(folder) {
  const handle = fs.openSync(folder, 'r');
  fs.fsyncSync(handle);
  fs.closeSync(handle);
}
