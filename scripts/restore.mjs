import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPostgres, stopLeftoverPostgres } from './embedded-postgres.mjs';
import { endWithParent } from './npm-parent.mjs';
import { makeDataDir } from './postgres-data.mjs';
import { Refusal, inOneSentence, inWords, launch, readJson, takeLock } from './processes.mjs';
import { readSettings } from './start-settings.mjs';

/** `npm run restore`: into DATABASE_URL, or into the data folder of `npm start`, whose database it starts meanwhile. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const program = path.join(root, 'dist/scripts/restore.js');
const stopAsked = new AbortController();

async function main(args) {
  const { databaseUrl, dataDir } = readSettings(root);
  if (!fs.existsSync(program))
    throw new Refusal('Inkpad is not built: run npm ci && npm run build first.');
  if (databaseUrl || args.length !== 1) return run(args);
  const code = await run([...args, '--check']);
  if (code !== 0) return code;
  return intoDataFolder(makeDataDir(dataDir), args);
}

async function intoDataFolder(dataDir, args) {
  const lock = takeLock(dataDir);
  if (lock.holder) {
    throw new Refusal(
      `Inkpad is running on ${dataDir} (process ${lock.holder.pid}): stop it, or name an empty folder in DATA_DIR.`,
    );
  }
  let postgres;
  try {
    if (readJson(path.join(dataDir, 'postgres.json'))) await stopLeftoverPostgres(dataDir);
    postgres = await startPostgres({
      dataDir,
      log: console.log,
      tie: true,
      signal: stopAsked.signal,
    });
    return await run([...args, '--into-data-folder'], {
      DATA_DIR: dataDir,
      DATABASE_URL: postgres.url,
      DATABASE_MIGRATION_URL: postgres.ownerUrl,
    });
  } finally {
    await postgres?.stop();
    lock.release();
  }
}

async function run(args, settings = {}) {
  const child = launch(process.execPath, [program, ...args], {
    cwd: process.cwd(),
    env: { ...process.env, ...settings },
    signal: stopAsked.signal,
    output: (line, stream) => (stream === 'stdout' ? console.log : console.error)(line),
  });
  const end = await child.result;
  if (end.code === null)
    throw new Refusal(`The restore ended early (${inWords(end)}): run it again.`);
  return end.code;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stopAsked.abort());
endWithParent();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(inOneSentence(error) ?? error.stack);
  process.exitCode = 1;
}
