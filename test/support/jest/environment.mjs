import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import { takePageErrors } from '../browser/page-errors.mjs';
import { describeExchanges, forgetExchanges } from '../http/exchanges.mjs';

/** Runs tests with the globals of the worker process instead of those of a new vm context. See test/support/README.md. */
export default class ProcessEnvironment {
  global = globalThis;
  exit = process.exit;

  /** @param {{ projectConfig: import('@jest/types').Config.ProjectConfig }} config */
  constructor({ projectConfig }) {
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  setup() {}

  teardown() {
    this.fakeTimersModern.dispose();
    this.moduleMocker.restoreAllMocks();
    // Jest replaces it for each test file.
    process.exit = this.exit;
  }

  /**
   * Lets a test fail for what pages logged during it, and adds the requests and responses that it has judged to what it
   * failed with.
   */
  handleTestEvent(event) {
    if (event.name === 'test_start') {
      forgetExchanges();
      takePageErrors();
    }
    if (event.name === 'test_fn_success') {
      const error = takePageErrors();
      if (error) event.test.errors.push(error);
    }
    if (event.name !== 'test_fn_failure' || !(event.error instanceof Error)) return;
    const exchanges = describeExchanges();
    if (exchanges === '') return;
    const { error } = event;
    const { message, stack = message } = error;
    error.message = `${message}\n\n${exchanges}`;
    error.stack = stack.replace(message, () => error.message);
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return null;
  }
}
