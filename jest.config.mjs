import path from 'node:path';
import { COMPILER_OPTIONS } from './tools/build/compile.mjs';
import { listSuitesOf, readSkippedParts } from './tools/test/parts.mjs';
import './test/support/jest/temporary-folder.mjs';

const skippedSuites = readSkippedParts().flatMap((name) => {
  const suites = listSuitesOf(name);
  const announce = () => console.error(`SKIP_PARTS: ${suites.length} files of ${name} do not run.`);
  announce();
  process.once('exit', announce);
  return suites;
});

// For the workers, and for the programs that tests start.
process.env.NODE_COMPILE_CACHE ??= path.resolve('node_modules/.cache/compile');

/** The same for all projects: sources are tested as written, through the same #imports. */
const base = {
  // Not in the temporary folder, of which nothing stays.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  transform: {
    '^.+\\.ts$': ['@swc/jest', COMPILER_OPTIONS],
  },
  testEnvironment: '<rootDir>/test/support/jest/environment.mjs',
  testRunner: '<rootDir>/test/support/jest/test-runner.mjs',
  testPathIgnorePatterns: ['/node_modules/', ...skippedSuites.map((file) => `/${file}$`)],
};

const servers = {
  globalSetup: '<rootDir>/test/support/jest/start-servers.mjs',
  globalTeardown: '<rootDir>/test/support/jest/stop-servers.mjs',
};

export default {
  // Only guards against hanging forever: a busy machine may be many times slower.
  testTimeout: 300_000,
  // A busy machine takes longer than half a second until a worker without open handles is gone.
  workerGracefulExitTimeout: 60_000,
  testSequencer: '<rootDir>/test/support/jest/sequencer.mjs',
  reporters: ['default', '<rootDir>/test/support/jest/reporter.cjs'],
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['<rootDir>/{apps,libs,tools,test/support}/**/*.spec.ts'],
    },
    {
      ...base,
      ...servers,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.e2e-spec.ts'],
    },
    // These need programs that may not be installed, such as Redis and other languages, kill processes, start several of
    // them, or take long.
    {
      ...base,
      ...servers,
      displayName: 'full',
      testMatch: ['<rootDir>/test/**/*.full-spec.ts'],
    },
    // Whole histories, killed processes, silences: minutes each.
    {
      ...base,
      ...servers,
      displayName: 'long',
      testMatch: ['<rootDir>/test/**/*.long-spec.ts'],
    },
  ],
};
