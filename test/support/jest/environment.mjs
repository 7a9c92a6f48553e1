import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import { describeExchanges, forgetExchanges } from '../http/exchanges.mjs';

/** Runs tests with the globals of the worker process instead of those of a new vm context. See ADR-0078. */
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

  /** Adds the requests and responses that a test has judged to what it failed with. */
  handleTestEvent(event) {
    if (event.name === 'test_start') forgetExchanges();
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
