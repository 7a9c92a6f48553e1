import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryQueues } from './delivery-queues.service.js';
import type { ViewRow } from './load-statements.js';
import { QueueLoader } from './queue-loader.service.js';

/** Loads nothing, and counts how often it was to be done. */
class Loadings extends StallDetector {
  count = 0;
  onLoad: () => void = () => undefined;

  override watch<R>(): Promise<R> {
    this.count++;
    this.onLoad();
    return Promise.resolve(undefined as R);
  }
}

const unused = undefined as never;
let metrics: DeliveryMetrics;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
});

afterEach(() => metrics.onApplicationShutdown());

function createLoader(attempts: { knowsErasures: boolean }) {
  const queues = new DeliveryQueues(metrics, unused);
  const loadings = new Loadings();
  const loader = new QueueLoader(
    unused,
    unused,
    queues,
    unused,
    unused,
    attempts as never,
    metrics,
    loadings,
  );
  return { queues, loadings, loader };
}

const READ = { id: null, subscriptionId: 1, target_url: null } as ViewRow;

// one queue is loaded | so many promises later, before anything else can happen, another one asks
it.each(
  [0, 1, 2, 3, 4, 5, 6].flatMap((n) => [[n, 'unread', []] as const, [n, 'read', [READ]] as const]),
)(
  'a queue that asks %i promises after one that was claimed %s is loaded',
  async (n, _state, read) => {
    const { loadings, loader } = createLoader({ knowsErasures: true });
    loadings.onLoad = () => {
      loadings.onLoad = () => undefined;
      void (async () => {
        for (let i = 0; i < n; i++) await Promise.resolve();
        loader.lease([[2, 'fast']]);
      })();
    };
    loader.lease([[1, 'fast']], [...read], performance.now());
    for (let turns = 0; turns < 5; turns++) await turn();
    await loader.finish();
    expect(loadings.count).toBe(2);
  },
);

it('reads nothing while erasures may be missed', async () => {
  const attempts = { knowsErasures: false };
  const { loadings, loader } = createLoader(attempts);
  loader.lease([[1, 'fast']]);
  for (let turns = 0; turns < 5; turns++) await turn();
  expect(loadings.count).toBe(0);
  attempts.knowsErasures = true;
  await loader.finish();
  expect(loadings.count).toBe(1);
});

it('stops waiting for erasures when the process stops', async () => {
  const { queues, loadings, loader } = createLoader({ knowsErasures: false });
  loader.lease([[1, 'fast']]);
  await turn();
  queues.isStopping = true;
  await loader.finish();
  expect(loadings.count).toBe(0);
});
