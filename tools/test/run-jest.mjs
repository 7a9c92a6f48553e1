import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** More of them in all runs of a CI script are no bad luck. */
const MAX_FLAKY_FILES = 3;

const JEST = createRequire(import.meta.url).resolve('jest/bin/jest');
const folder = process.env.INKPAD_TEST_RESULTS;
/** Children that a signal to this process alone has to end as well. */
const children = new Set();

/**
 * Runs Jest. In a CI script, which has a folder INKPAD_TEST_RESULTS, each file that failed runs once more at the end, alone. What
 * passes then is flaky: it is listed in `flaky` with its first error, and only a few such files are tolerated.
 * @param {string[]} options of Jest
 * @returns {Promise<number>} the exit code
 */
export async function runJest(options, { env = process.env } = {}) {
  const start = (ownOptions) => runNode([JEST, ...ownOptions], env);
  if (!folder) return start(options);
  const failures = path.join(folder, 'failures');
  fs.rmSync(failures, { force: true });
  const code = await start(options);
  if (code === 0 || !fs.existsSync(failures)) return code;
  const failed = readLines(failures).map((line) => JSON.parse(line));
  const flaky = path.join(folder, 'flaky');
  if (failed.length + countFlaky(flaky) > MAX_FLAKY_FILES) return code;
  for (const { file, project, error, passedCount, failedCount } of failed) {
    console.log(`\n${file} has failed, and runs once more, alone.`);
    const ownOptions = ['--maxWorkers=1', `--selectProjects=${project}`, '--runTestsByPath', file];
    const again = await start(ownOptions);
    if (again !== 0) return again;
    fs.appendFileSync(flaky, `${file}\n${error.map((line) => `  ${line}\n`).join('')}`);
    // Its first results do not count.
    fs.appendFileSync(path.join(folder, 'counts'), `${-passedCount} ${-failedCount}\n`);
  }
  return 0;
}

/** Runs Node.js, and ends it with this process. @returns {Promise<number>} the exit code */
export function runNode(parameters, env = process.env) {
  const child = spawn(process.execPath, parameters, { stdio: 'inherit', env });
  children.add(child);
  return new Promise((resolve) => {
    child.once('close', (code) => {
      children.delete(child);
      resolve(code ?? 1);
    });
  });
}

/** Counts the files of the list, in which their errors are indented. */
function countFlaky(flaky) {
  return readLines(flaky).filter((line) => !line.startsWith(' ')).length;
}

/** @returns {string[]} */
function readLines(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}

for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) {
  process.once(signal, () => {
    for (const child of children) child.kill(signal);
    process.kill(process.pid, signal);
  });
}
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = await runJest(process.argv.slice(2));
}
