import { expect, it } from '@jest/globals';
import { drawBars } from './bar-chart.js';

it('scales bars to the highest, and draws none for zero', () => {
  expect(drawBars({ values: [[1, 0, 4]], before: [] })).toEqual({
    width: 3,
    max: 4,
    bars: [['M0.5 100v-25'], [''], ['M2.5 100v-100']],
    line: '',
  });
});

it('stacks series on one another', () => {
  const { max, bars } = drawBars({ values: [[1], [3]], before: [] });
  expect([max, bars]).toEqual([4, [['M0.5 100v-25', 'M0.5 75v-75']]]);
});

it('draws what there was before as a line of the same scale', () => {
  const { max, bars, line } = drawBars({ values: [[2, 1]], before: [4, 0] });
  expect([max, bars[0], line]).toEqual([2, ['M0.5 100v-50'], '0.5,0 1.5,100']);
});

it('draws nothing where nothing happened', () => {
  expect(drawBars({ values: [[0, 0]], before: [0, 0] })).toEqual({
    width: 2,
    max: 0,
    bars: [[''], ['']],
    line: '',
  });
});
