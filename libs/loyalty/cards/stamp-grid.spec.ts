import { describe, expect, it } from '@jest/globals';
import { arrangeStamps, STRIP } from './stamp-grid.js';

const COUNTS = Array.from({ length: 21 }, (_, index) => index + 1);
/** The radius of a stamp relative to its cell, with the ring around a reward's stamp. */
const RADIUS = 0.46;
/** Older phones show a flatter strip: the middle of the image. */
const CROPPED_HEIGHT = (STRIP.height * (1 - 123 / 144)) / 2;

describe.each(COUNTS)('a grid of %i', (stamps) => {
  const { cellSize, centres } = arrangeStamps(stamps);
  const rowHeights = [...new Set(centres.map(({ y }) => y))];
  const rows = rowHeights.map((height) => centres.filter(({ y }) => y === height));

  it('places every stamp, without overlaps', () => {
    expect(centres).toHaveLength(stamps);
    for (const [i, a] of centres.entries()) {
      for (const b of centres.slice(i + 1)) {
        expect(Math.max(Math.abs(a.x - b.x), Math.abs(a.y - b.y))).toBeGreaterThan(
          cellSize - 0.001,
        );
      }
    }
  });

  it('lies within the area that every phone shows', () => {
    for (const { x, y } of centres) {
      expect(x - RADIUS * cellSize).toBeGreaterThan(0);
      expect(x + RADIUS * cellSize).toBeLessThan(STRIP.width);
      expect(y - RADIUS * cellSize).toBeGreaterThan(CROPPED_HEIGHT);
      expect(y + RADIUS * cellSize).toBeLessThan(STRIP.height - CROPPED_HEIGHT);
    }
  });

  it('is balanced, centred, and filled from the upper left', () => {
    const lengths = rows.map(({ length }) => length);
    expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
    for (const row of rows) {
      const middle = row.reduce((sum, { x }) => sum + x, 0) / row.length;
      expect(middle).toBeCloseTo(STRIP.width / 2);
    }
    const order = [...centres].sort((a, b) => a.y - b.y || a.x - b.x);
    expect(centres).toEqual(order);
  });
});
