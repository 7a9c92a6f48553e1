import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

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

  exportConditions() {
    return ['node', 'node-addons'];
  }

  getVmContext() {
    return null;
  }
}
