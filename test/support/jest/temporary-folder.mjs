import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopLeftoverPostgres } from '../../../apps/cli/local-postgres/embedded-postgres.mjs';
import { getStartTime } from '../../../apps/cli/processes.mjs';

/**
 * Imported once by the process that runs tests: whatever it and the processes that it starts put into the temporary
 * folder lies in one folder, which goes when this process exits. Of runs that were killed the next run removes it.
 */

// The path of a Unix socket inside has at most 107 bytes.
const prefix = 'ink-';
const place = tmpdir();
await removeAbandoned();

const folder = mkdtempSync(join(place, `${prefix}${process.pid}-`));
// As root, PostgreSQL's own user must be able to pass through it.
chmodSync(folder, 0o711);
process.env.TMPDIR = folder;
process.on('exit', () => {
  // A run that fails before it has stopped its servers leaves them to the next run.
  if (serversIn(folder).length === 0) remove(folder);
});

async function removeAbandoned() {
  for (const name of readdirSync(place)) {
    const pid = name.startsWith(prefix) && /^\d+/.exec(name.slice(prefix.length))?.[0];
    if (!pid || getStartTime(Number(pid)) !== null) continue;
    for (const dataDir of serversIn(join(place, name))) await stopLeftoverPostgres(dataDir);
    remove(join(place, name));
  }
}

/** @param {string} run @returns the data folders in it whose server was not removed */
function serversIn(run) {
  // Another run may have removed it.
  return (existsSync(run) ? readdirSync(run) : [])
    .filter((name) => name.startsWith('postgres-'))
    .map((name) => join(run, name))
    .filter((dataDir) => existsSync(join(dataDir, 'postgres.json')));
}

/** @param {string} run */
function remove(run) {
  try {
    rmSync(run, { recursive: true, force: true, maxRetries: 3 });
  } catch (error) {
    // Another user's, or another run removes it as well.
    console.error(`${run} could not be removed: ${error.message}`);
  }
}
