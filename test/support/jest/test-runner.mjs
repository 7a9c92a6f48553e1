import module, { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { setGlobals } from './globals.mjs';
import * as hooks from './hooks.mjs';

const require = createRequire(import.meta.url);
const { default: runWithCircus } = require('jest-circus/runner');

/** Of the modules that this process has loaded: where Jest keeps their source maps. @type {Map<string, string>} */
const sourceMaps = new Map();
const { port1: ourSide, port2: hooksSide } = new MessageChannel();
let areHooksRegistered = false;

/**
 * Runs a test file with jest-circus, and loads it and what it imports as Node.js does: once for each worker process
 * instead of once for each test file. See test/support/README.md.
 */
export default async function runTestFile(
  globalConfig,
  config,
  environment,
  runtime,
  testPath,
  sendMessageToJest,
) {
  if (!areHooksRegistered) await registerHooks(config);
  areHooksRegistered = true;
  // Each test file gets a state and handlers of its own, as in a new context.
  delete globalThis[Symbol.for('EVENT_HANDLERS')];
  const nodeRuntime = {
    requireInternalModule(file) {
      delete require.cache[file];
      return require(file);
    },
    requireModule: require,
    unstable_shouldLoadAsEsm: () => true,
    async unstable_importModule(file) {
      await import(pathToFileURL(file).href);
      for (const [source, map] of loadedSourceMaps()) runtime.getSourceMaps().set(source, map);
    },
    setGlobalsForRuntime: (globals) => setGlobals({ ...globals, jest: jestObject(environment) }),
    // Called around the code of a test, for what only a vm context needs.
    enterTestCode() {},
    leaveTestCode() {},
  };
  return runWithCircus(globalConfig, config, environment, nodeRuntime, testPath, sendMessageToJest);
}

/** In this thread where Node.js can: asking another one about each of 3,000 modules takes a second. */
async function registerHooks(config) {
  const data = { config, loaded: hooksSide };
  if (module.registerHooks) {
    await hooks.initialize(data);
    module.registerHooks({ resolve: hooks.resolve, load: hooks.load });
  } else {
    register('./hooks.mjs', import.meta.url, { data, transferList: [hooksSide] });
  }
}

/** Of all modules so far, because this file may fail in one that an earlier file has loaded. */
function loadedSourceMaps() {
  for (let next = receiveMessageOnPort(ourSide); next; next = receiveMessageOnPort(ourSide)) {
    sourceMaps.set(...next.message);
  }
  return sourceMaps;
}

function jestObject({ fakeTimersModern: timers, moduleMocker: mocks }) {
  return {
    fn: mocks.fn.bind(mocks),
    spyOn: mocks.spyOn.bind(mocks),
    restoreAllMocks: () => mocks.restoreAllMocks(),
    useFakeTimers: (options) => timers.useFakeTimers(options),
    useRealTimers: () => timers.useRealTimers(),
  };
}
