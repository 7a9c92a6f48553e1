import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { StallDetector } from '#kernel/stall-detector.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { QueueFiller } from './queue-filler.service.js';
import { LeasedQueues } from './leased-queues.service.js';

/** Counts how often a queue should be filled, and fills none. */
class FillCounter extends StallDetector {
  count = 0;
  onFill: () => void = () => undefined;

  override watch<R>(): Promise<R> {
    this.count++;
    this.onFill();
    return Promise.resolve(undefined as R);
  }
}

let metrics: DeliveryMetrics;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
});

afterEach(() => metrics.onApplicationShutdown());

// While one queue is being filled, another one is leased so many microtasks later.
it.each([0, 1, 2, 3, 4, 5, 6])(
  'QueueFiller fills a queue that is leased %i microtasks after another one',
  async (n) => {
    const queues = new LeasedQueues(metrics);
    const fillCounter = new FillCounter();
    const unused = undefined as never;
    const filler = new QueueFiller(queues, unused, unused, unused, unused, metrics, fillCounter);
    fillCounter.onFill = () => {
      fillCounter.onFill = () => undefined;
      void (async () => {
        for (let i = 0; i < n; i++) await Promise.resolve();
        queues.lease(2, 'fast');
      })();
    };
    queues.lease(1, 'fast');
    for (let turns = 0; turns < 5; turns++) await turn();
    await filler.finish();
    expect(fillCounter.count).toBe(2);
  },
);
