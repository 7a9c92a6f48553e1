import fs from 'node:fs';
import path from 'node:path';
import { startPostgres, stopLeftoverPostgres } from './embedded-postgres.mjs';
import { createDataDir } from './postgres-data.mjs';
import { StartFailure } from '../start-failure.mjs';
import { describeExit, launch, readJson, stopLeftover, takeLock } from '../processes.mjs';

/**
 * Runs a program that needs api and dispatcher stopped on the database of a data folder, which runs for as long and is
 * stopped afterwards, however the program ends.
 * @param {{ program: string, args: string[], command: string, settings: { dataDir: string, publicUrl: string },
 *   mayBeNew?: boolean }} options `command`: as people type it
 * @returns {Promise<number>} the program's exit code
 * @throws StartFailure while npm start or another such command has the folder, or when it holds no database
 */
export async function runOnDataFolder({ program, args, command, settings, mayBeNew = false }) {
  const { dataDir: named, publicUrl } = settings;
  if (!mayBeNew) refuseWithoutDatabase(named, command);
  const dataDir = createDataDir(named);
  const lock = takeLock(dataDir, command);
  if (lock.holder) throw new StartFailure(describeHolder(dataDir, lock.holder, command));
  const stop = stopOnSignals();
  let postgres;
  try {
    await stopLeftovers(dataDir);
    postgres = await startPostgres({ dataDir, log: console.error, tie: true, signal: stop });
    return await runProgramOnData(
      { program, args, command, signal: stop },
      {
        DATA_DIR: dataDir,
        DATABASE_URL: postgres.url,
        DATABASE_MIGRATION_URL: postgres.ownerUrl,
        // Given twice they would be refused.
        DATABASE_URL_FILE: '',
        DATABASE_MIGRATION_URL_FILE: '',
        PUBLIC_URL: publicUrl,
      },
    );
  } finally {
    await postgres?.stop();
    lock.release();
  }
}

/** Stops child processes that a kill -9 of npm start left running; run.json names them. */
export async function stopLeftovers(dataDir) {
  const runFile = path.join(dataDir, 'run.json');
  const left = readJson(runFile);
  const stopped = await Promise.all(
    ['step', 'api', 'dispatcher'].map((name) => stopLeftover(left?.[name], 'SIGTERM')),
  );
  const database = await stopLeftoverPostgres(dataDir);
  fs.rmSync(runFile, { force: true });
  return database || stopped.includes(true);
}

/** @returns {Promise<number>} */
export async function runProgramOnData({ program, args, command, signal }, settings = {}) {
  if (signal.aborted) throw createEarlyEndError(command, 'it was stopped');
  const child = launch(process.execPath, [program, ...args], {
    cwd: process.cwd(),
    env: { ...process.env, ...settings },
    signal,
    tie: true,
    output: (line, stream) => (stream === 'stdout' ? console.log : console.error)(line),
  });
  const end = await child.result;
  if (end.code === null) throw createEarlyEndError(command, describeExit(end));
  return end.code;
}

let stopRequested;

/** @returns {AbortSignal} aborted by the first signal that asks this process to end, which it then does by itself */
export function stopOnSignals() {
  if (stopRequested) return stopRequested.signal;
  stopRequested = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => stopRequested.abort());
  return stopRequested.signal;
}

function refuseWithoutDatabase(dataDir, command) {
  const record = fs.existsSync(dataDir) ? readJson(path.join(dataDir, 'postgres.json')) : null;
  if (record?.completed) return;
  throw new StartFailure(
    `There is no database in ${dataDir} yet, so ${command} has nothing to work on: npm start creates one. For another database, set DATABASE_URL; for another data folder, DATA_DIR.`,
  );
}

function describeHolder(dataDir, { pid, command: holder }, command) {
  return holder
    ? `${holder} is working on ${dataDir} (process ${pid}): wait until it has ended, then run ${command}.`
    : `Inkpad is running on ${dataDir} (process ${pid}): stop it, then run ${command} again.`;
}

function createEarlyEndError(command, why) {
  return new StartFailure(`${command} ended early (${why}): run it again.`);
}
