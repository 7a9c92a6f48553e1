import { expect, it } from '@jest/globals';
import { drawBars } from './bar-chart.js';

it('scales bars to the highest, and draws none for zero', () => {
  expect(drawBars({ values: [[1, 0, 4]] })).toEqual({
    width: 3,
    max: 4,
    paths: ['M0.08 100v-25h0.84v25zM2.08 100v-100h0.84v100z'],
  });
});

it('stacks series on one another', () => {
  const { max, paths } = drawBars({ values: [[1], [3]] });
  expect([max, paths]).toEqual([4, ['M0.08 100v-25h0.84v25z', 'M0.08 75v-75h0.84v75z']]);
});

it('draws nothing where nothing happened', () => {
  expect(drawBars({ values: [[0, 0]] })).toEqual({ width: 2, max: 0, paths: [''] });
});
