import { describe, expect, it } from '@jest/globals';
import { Progress } from './progress.js';

function render(isTTY: boolean, total: number, steps: [at: number, count: number][]): string {
  let text = '';
  let now = 0;
  const output = { isTTY, write: (more: string) => (text += more) };
  const progress = new Progress('events', total, output, () => now);
  for (const [at, count] of steps) {
    now = at;
    progress.add(count);
  }
  progress.end();
  return text;
}

describe('progress', () => {
  it('is a line every five seconds where there is no terminal', () => {
    const steps: [number, number][] = [
      [1_000, 1_000],
      [5_000, 4_000],
      [6_000, 1_000],
      [10_000, 4_000],
    ];
    expect(render(false, 100_000, steps)).toBe(
      '5 % (5,000 of 100,000 events), 1,000/s, 1 min 35 s left\n' +
        '10 % (10,000 of 100,000 events), 1,000/s, 1 min 30 s left\n' +
        '10 % (10,000 of 100,000 events), 1,000/s, 1 min 30 s left\n',
    );
  });

  it('says how long it takes from when the first part is done, however late that is', () => {
    const steps: [number, number][] = [
      [28_000, 20],
      [29_000, 1_000],
    ];
    expect(render(false, 80_020, steps)).toBe(
      '1 % (1,020 of 80,020 events), 1,000/s, 1 min 19 s left\n'.repeat(2),
    );
  });

  it('is a bar on a terminal', () => {
    expect(render(true, 10, [[1_000, 5]])).toBe(
      `\r[${'#'.repeat(15)}${'-'.repeat(15)}] 50 % (5 of 10 events), 5/s, 1 s left\u001b[K`.repeat(
        2,
      ) + '\n',
    );
  });

  it('ends at 100 % when there was more to do than expected, or nothing', () => {
    expect(render(false, 10, [[1_000, 20]])).toContain('100 % (20 of 20 events)');
    expect(render(false, 0, [])).toContain('100 % (0 of 0 events)');
  });
});
