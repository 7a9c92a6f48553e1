import '../../apps/cli/node-version.cjs';
import os from 'node:os';
import { endWithParent } from '../../apps/cli/npm-parent.mjs';
import { runJest, runNode } from './run-jest.mjs';

/**
 * `npm test`: everything that needs only Node.js and npm. `npm test -- stamping` runs the tests of one subject, by a part
 * of their paths, and with them those of its rules that are too slow for every run.
 */
const subjects = process.argv.slice(2);

/** More than there are processors: files wait for timers and other processes most of the time. */
const WORKERS = subjects.length === 0 ? Math.max(4, 3 * os.availableParallelism()) : 2;

/** A title that begins with the id of a rule in docs/api.md, whatever describes it. */
const RULE_TITLE = '(^| )[A-Z]+-[0-9]+ ';

endWithParent();

if (subjects.length === 0) {
  const suites = ['clients/verifier/verifier.test.mjs', 'bench/scale-model.test.mjs'];
  const temporary = './test/support/jest/temporary-folder.mjs';
  await succeed(runNode(['--import', temporary, '--test', ...suites]));
}
const paths = subjects.length === 0 ? [] : ['--testPathPatterns', ...subjects];
const start = (...options) => runJest([`--maxWorkers=${WORKERS}`, ...options]);
await succeed(start('--selectProjects', 'unit', 'e2e', ...paths));
if (subjects.length > 0) {
  const slowRules = ['--selectProjects=full', `--testNamePattern=${RULE_TITLE}`];
  await succeed(start(...slowRules, '--passWithNoTests', ...paths));
}

async function succeed(running) {
  const code = await running;
  if (code !== 0) process.exit(code);
}
