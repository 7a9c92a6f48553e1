import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, findWork, install } from './build.mjs';
import { StartFailure } from '../../apps/cli/start-failure.mjs';

/** Before tests and checks: installs and builds what is missing or stale; silent if nothing is. */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const work = findWork(root, true);

if (work.install || work.build) {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-ready-'));
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  const around = { root, dataDir, say: console.log, signal: stop.signal, onStep: () => {} };
  try {
    if (work.install) await install(around, true);
    if (work.build) await build(around);
    fs.rmSync(dataDir, { recursive: true });
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    // Its log stays in that folder.
    console.error(error.message);
    process.exitCode = 1;
  }
}
