const { appendFileSync } = require('node:fs');

/** Leaves `passed failed` of each run for the script that adds them up; suites that cannot even load fail too. */
module.exports = class Counts {
  onRunComplete(_contexts, results) {
    const file = process.env.INKPAD_TEST_COUNTS;
    if (!file) return;
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    appendFileSync(file, `${results.numPassedTests} ${failed}\n`);
  }
};
