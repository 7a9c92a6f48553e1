import { describe, expect, it } from '@jest/globals';
import { computeContrast } from '#platform/kernel/contrast.js';
import { proposeColors } from './logo-colors.js';
import type { RgbaPixels } from './logo-plate.js';

/** A square of stripes, each as wide as its share of a hundred. */
function createStripes(...stripes: [share: number, color: [number, number, number]][]): RgbaPixels {
  const row = stripes.flatMap(([share, color]) =>
    Array.from({ length: share }, () => [...color, 255]),
  );
  return { data: Uint8Array.from([row, row].flat(2)), width: row.length, height: 2 };
}

const WHITE: [number, number, number] = [255, 255, 255];
const logos = {
  'a red logo on white': createStripes([70, WHITE], [30, [200, 30, 40]]),
  'a yellow logo': createStripes([100, [250, 220, 40]]),
  'a black logo': createStripes([90, WHITE], [10, [0, 0, 0]]),
  'a logo of many colours': createStripes([40, [20, 90, 200]], [30, [230, 160, 20]], [30, WHITE]),
};

describe('colours proposed from a logo', () => {
  it.each(Object.entries(logos))('are readable for %s', (_name, pixels) => {
    const proposals = proposeColors(pixels);
    expect(proposals).toHaveLength(3);
    for (const { cardColor, textColor, stampColor, stampBackgroundColor } of proposals) {
      expect(computeContrast(cardColor, textColor)).toBeGreaterThanOrEqual(4.5);
      expect(computeContrast(stampColor, stampBackgroundColor)).toBeGreaterThanOrEqual(3);
      expect(computeContrast(cardColor, stampBackgroundColor)).toBeGreaterThanOrEqual(3);
    }
  });

  it('begin with the main colour, whatever the ground of the logo', () => {
    expect(proposeColors(logos['a red logo on white'])[0]?.cardColor).toBe('#CC1C2C');
    const avatar = createStripes([72, [46, 125, 50]], [28, [255, 214, 0]]);
    expect(proposeColors(avatar)[0]?.cardColor).toBe('#2C7C34');
  });
});
