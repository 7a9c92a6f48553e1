import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findWork, install } from './build.mjs';
import { Refusal } from './processes.mjs';

/** Before tests on a fresh clone: installs what is missing; silent if nothing is. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

if (findWork(root, true).install) {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-install-'));
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
  try {
    await install({ root, dataDir, say: console.log, signal: stop.signal, onStep: () => {} }, true);
    fs.rmSync(dataDir, { recursive: true });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
