/** What pages logged during the test that runs, and what it expects of that. */
const texts = [];
const provoked = [];
const possible = [];

/**
 * Lets a test fail for what pages log during it: errors, warnings and uncaught exceptions. A test names the errors that it
 * provokes, such as the browser's own about a response of 404; each of them has to be logged.
 */
export const pageErrors = {
  /** @param {import('playwright-core').BrowserContext} context */
  watch(context) {
    context.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) texts.push(message.text());
    });
    context.on('weberror', (error) => texts.push(String(error.error())));
  },
  /** Expects errors from the test that runs. @param {RegExp[]} patterns */
  expect: (...patterns) => void provoked.push(...patterns),
  /** Allows errors that depend on when a page loads. @param {RegExp[]} patterns */
  allow: (...patterns) => void possible.push(...patterns),
};

/** Forgets what was logged. @returns {Error | undefined} what a test fails with for it */
export function takePageErrors() {
  const logged = texts.splice(0);
  const required = provoked.splice(0);
  const expected = [...required, ...possible.splice(0)];
  const unexpected = logged.filter((text) => !expected.some((pattern) => pattern.test(text)));
  const missing = required.filter((pattern) => !logged.some((text) => pattern.test(text)));
  const lines = [
    ...unexpected.map((text) => `a page logged: ${text}`),
    ...missing.map((pattern) => `no page logged what was expected: ${pattern}`),
  ];
  return lines.length === 0 ? undefined : new Error(lines.join('\n'));
}
