import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { StallDetector } from '#kernel/stall-detector.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LaneFiller } from './lane-filler.service.js';
import { OwnedLanes } from './owned-lanes.service.js';

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

// one lane is filled | so many promises later, before anything else can happen, another one asks
it.each([0, 1, 2, 3, 4, 5, 6])(
  'a lane that asks %i promises after another is filled',
  async (n) => {
    const lanes = new OwnedLanes(metrics);
    const fillings = new Fillings();
    const unused = undefined as never;
    const filler = new LaneFiller(lanes, unused, unused, unused, unused, metrics, fillings);
    fillings.onFill = () => {
      fillings.onFill = () => undefined;
      void (async () => {
        for (let i = 0; i < n; i++) await Promise.resolve();
        lanes.own(2, 'fast');
      })();
    };
    lanes.own(1, 'fast');
    for (let turns = 0; turns < 5; turns++) await turn();
    await filler.finish();
    expect(fillings.count).toBe(2);
  },
);
