import '../../apps/cli/node-version.cjs';
import { spawn } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithParent } from '../../apps/cli/npm-parent.mjs';

/**
 * `npm test`: everything that needs only Node.js and npm. `npm test -- stamping` runs the tests of one subject, by a part
 * of their paths, and with them those of its rules that are too slow for every run.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const subjects = process.argv.slice(2);

/** More than there are processors: files wait for timers and other processes most of the time. */
const WORKERS = subjects.length === 0 ? Math.max(4, 3 * os.availableParallelism()) : 2;

/** A title that begins with the id of a rule in docs/api.md, whatever describes it. */
const RULE_TITLE = '(^| )[A-Z]+-[0-9]+ ';

/** Children that a signal to this process alone has to end as well. */
const children = new Set();
for (const signal of ['SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    for (const child of children) child.kill(signal);
    process.kill(process.pid, signal);
  });
}
endWithParent();

if (subjects.length === 0) {
  const suites = ['clients/verifier/verifier.test.mjs', 'bench/scale-model.test.mjs'];
  const temporary = './test/support/jest/temporary-folder.mjs';
  await succeed(run(process.execPath, ['--import', temporary, '--test', ...suites]));
}
const jest = path.join(root, 'node_modules', 'jest', 'bin', 'jest.js');
const paths = subjects.length === 0 ? [] : ['--testPathPatterns', ...subjects];
const start = (...options) => run(process.execPath, [jest, `--maxWorkers=${WORKERS}`, ...options]);
await succeed(start('--selectProjects', 'unit', 'e2e', ...paths));
if (subjects.length > 0) {
  const slowRules = ['--selectProjects=full', `--testNamePattern=${RULE_TITLE}`];
  await succeed(start(...slowRules, '--passWithNoTests', ...paths));
}

function run(program, parameters) {
  const child = spawn(program, parameters, { cwd: root, stdio: 'inherit' });
  children.add(child);
  return new Promise((resolve) => {
    child.once('close', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
}

async function succeed(running) {
  const code = await running;
  if (code !== 0) process.exit(code ?? 1);
}
