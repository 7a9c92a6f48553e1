const { appendFileSync } = require('node:fs');

/** Writes `passed failed` of each run for the CI script to add up; suites that fail to load count as failed. */
module.exports = class Counts {
  onRunComplete(_contexts, results) {
    const file = process.env.INKPAD_TEST_COUNTS;
    if (!file) return;
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    appendFileSync(file, `${results.numPassedTests} ${failed}\n`);
  }
};
