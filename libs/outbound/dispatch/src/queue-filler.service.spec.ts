import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { StallDetector } from '#kernel/stall-detector.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { QueueFiller } from './queue-filler.service.js';
import { LeasedQueues } from './leased-queues.service.js';

/** Fills nothing, and counts how often it was to be done. */
class Fillings extends StallDetector {
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

// one queue is filled | so many promises later, before anything else can happen, another one asks
it.each([0, 1, 2, 3, 4, 5, 6])(
  'a queue that asks %i promises after another is filled',
  async (n) => {
    const queues = new LeasedQueues(metrics);
    const fillings = new Fillings();
    const unused = undefined as never;
    const filler = new QueueFiller(queues, unused, unused, unused, unused, metrics, fillings);
    fillings.onFill = () => {
      fillings.onFill = () => undefined;
      void (async () => {
        for (let i = 0; i < n; i++) await Promise.resolve();
        queues.lease(2, 'fast');
      })();
    };
    queues.lease(1, 'fast');
    for (let turns = 0; turns < 5; turns++) await turn();
    await filler.finish();
    expect(fillings.count).toBe(2);
  },
);
