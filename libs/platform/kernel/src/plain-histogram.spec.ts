import { expect, it } from '@jest/globals';
import { Histogram, Registry } from 'prom-client';
import { PlainHistogram } from './plain-histogram.js';

const OPTIONS = {
  name: 'seconds',
  help: 'Time',
  labelNames: ['method', 'status'] as const,
  buckets: [0.002, 0.1, 1],
};

it('is scraped as the histogram of prom-client would be', async () => {
  const [plainRegistry, registry] = [new Registry(), new Registry()];
  const plain = new PlainHistogram(plainRegistry, OPTIONS);
  const histogram = new Histogram({ ...OPTIONS, registers: [registry] });
  expect(await plainRegistry.metrics()).toBe(await registry.metrics());
  const observations = [
    [0.001, 'GET', '2xx'],
    [0.002, 'GET', '2xx'],
    [0.5, 'POST', '4xx'],
    [1, 'POST', '4xx'],
    [30, 'POST', '4xx'],
    [0, 'POST', 'none'],
  ] as const;
  for (const [value, method, status] of observations) {
    plain.observe(value, method, status);
    histogram.observe({ method, status }, value);
  }
  expect(await plainRegistry.metrics()).toBe(await registry.metrics());
});

it('is scraped as the histogram of prom-client would be, without labels too', async () => {
  const [plainRegistry, registry] = [new Registry(), new Registry()];
  const options = { ...OPTIONS, labelNames: [] };
  const plain = new PlainHistogram(plainRegistry, options);
  const histogram = new Histogram({ ...options, registers: [registry] });
  expect(await plainRegistry.metrics()).toBe(await registry.metrics());
  plain.observe(0.5);
  histogram.observe(0.5);
  expect(await plainRegistry.metrics()).toBe(await registry.metrics());
});
