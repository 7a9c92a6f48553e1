const { appendFileSync } = require('node:fs');
const path = require('node:path');
const { stripVTControlCharacters } = require('node:util');

const SLOWEST = 10;
const PROGRESS_EVERY_MS = 15_000;

/**
 * Says how far a run is where there is no terminal for Jest's own display, and at the end which files took longest.
 * Writes to a folder INKPAD_TEST_RESULTS `passed failed` of each run, for the CI script to add up, and the files that
 * failed, for `tools/test/run-jest.mjs`. Suites that fail to load count as failed.
 */
module.exports = class Reporter {
  onRunStart({ numTotalTestSuites }) {
    this.startedAt = Date.now();
    this.saidAt = this.startedAt;
    this.total = numTotalTestSuites;
  }

  onTestFileResult(_test, _result, { numPassedTestSuites, numFailedTestSuites, numPassedTests }) {
    const now = Date.now();
    if (process.stdout.isTTY || now - this.saidAt < PROGRESS_EVERY_MS) return;
    this.saidAt = now;
    const files = numPassedTestSuites + numFailedTestSuites;
    const seconds = Math.round((now - this.startedAt) / 1000);
    say(`${files} of ${this.total} files, ${numPassedTests} tests passed, ${seconds} s`);
  }

  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const folder = process.env.INKPAD_TEST_RESULTS;
    if (folder) {
      appendFileSync(path.join(folder, 'counts'), `${results.numPassedTests} ${failed}\n`);
      for (const result of results.testResults.filter(hasFailed)) {
        appendFileSync(path.join(folder, 'failures'), `${JSON.stringify(toFailure(result))}\n`);
      }
    }
    if (results.testResults.length <= SLOWEST) return;
    const slowest = results.testResults
      .map(({ testFilePath, perfStats }) => ({ testFilePath, ms: perfStats.runtime ?? 0 }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, SLOWEST)
      .map(({ testFilePath, ms }) => {
        const seconds = (ms / 1000).toFixed(1).padStart(6);
        return `${seconds} s  ${path.relative(process.cwd(), testFilePath)}`;
      });
    say(`\nThe ${SLOWEST} slowest files:\n${slowest.join('\n')}`);
  }
};

function hasFailed({ numFailingTests, testExecError }) {
  return numFailingTests > 0 || testExecError != null;
}

function toFailure(result) {
  const { testFilePath, displayName, failureMessage, numPassingTests, numFailingTests } = result;
  return {
    file: path.relative(process.cwd(), testFilePath),
    project: displayName?.name,
    error: stripVTControlCharacters(failureMessage ?? '')
      .trim()
      .split('\n')
      .slice(0, 8),
    passedCount: numPassingTests,
    failedCount: Math.max(numFailingTests, 1),
  };
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
