/**
 * With `--import`: counts what this process does for each HTTP request, for the process that has forked it. That one
 * starts a kind of count with a message, sends requests one after another, and ends the count with another message. A
 * request lasts until the next one begins: what follows its response counts as well.
 */
import { createHook } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { Session } from 'node:inspector';
import { getHeapStatistics } from 'node:v8';
import pg from 'pg';

/** How often a process announces its commits at most. */
const ANNOUNCE_EVERY_MS = 20;
const LONG_MS = 600_000;
const BUILT = new URL('../../../dist/', import.meta.url).href;

let kind;
let measurements = [];
let counts = { promises: 0, statements: 0, timers: 0 };
const hook = createHook({
  init: (_id, type) => {
    if (type === 'PROMISE') counts.promises++;
  },
});

// Only those of packages: Node.js has its own for each connection.
for (const name of ['setTimeout', 'setInterval']) {
  globalThis[name] = new Proxy(globalThis[name], {
    apply: (set, _this, [callback, ms, ...values]) => {
      counts.timers++;
      // While it counts, only the first commit: on a busy machine each request takes longer.
      return set(callback, kind && ms === ANNOUNCE_EVERY_MS ? LONG_MS : ms, ...values);
    },
  });
}

const { query } = pg.Client.prototype;
pg.Client.prototype.query = function queryAndCount(...statement) {
  counts.statements++;
  return query.apply(this, statement);
};

const session = new Session();
session.connect();

/** Calls the inspector, which responds at once in its own process. */
function post(method, parameters) {
  let result;
  session.post(method, parameters, (error, value) => {
    if (error) throw error;
    result = value;
  });
  return result;
}

/** Each kind begins, measures when a request begins, and ends with further measurements. */
const KINDS = {
  /** Promises, timers and statements of each request. */
  events: {
    begin: () => hook.enable(),
    measure: () => {
      const measured = counts;
      counts = { promises: 0, statements: 0, timers: 0 };
      return [measured];
    },
    end: () => {
      hook.disable();
      return [counts];
    },
  },
  /** The size of the heap before each request. */
  heap: {
    begin: () => {},
    measure: () => [getHeapStatistics().used_heap_size],
    end: () => [],
  },
  /** The numbers of calls of our own functions, in all requests. */
  functions: {
    begin: () => {
      post('Profiler.enable');
      post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    },
    measure: () => [],
    end: () => {
      const { result } = post('Profiler.takePreciseCoverage');
      post('Profiler.disable');
      const functions = result
        .filter(({ url }) => url.startsWith(BUILT))
        .flatMap(({ functions }) => functions);
      return [functions.map(({ ranges: [whole] }) => whole.count)];
    },
  },
};

subscribe('http.server.request.start', () => {
  if (kind) measurements.push(...kind.measure());
});

process.on('message', ({ start }) => {
  if (start) {
    measurements = [];
    kind = KINDS[start];
    kind.begin();
    process.send({ started: start });
  } else {
    measurements.push(...kind.end());
    kind = undefined;
    process.send(measurements);
  }
});
