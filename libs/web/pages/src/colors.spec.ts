import { describe, expect, it } from '@jest/globals';
import { computeContrast, pickReadableColor } from './colors.js';

describe('computeContrast', () => {
  it('computes the ratio of WCAG', () => {
    expect(computeContrast('#000000', '#FFFFFF')).toBeCloseTo(21, 5);
    expect(computeContrast('#FFFFFF', '#777777')).toBeCloseTo(4.48, 2);
    expect(computeContrast('#123456', '#123456')).toBe(1);
  });
});

describe('pickReadableColor', () => {
  it('keeps a readable colour', () => {
    expect(pickReadableColor('#6B4226', '#FFFFFF')).toBe('#FFFFFF');
  });

  it('returns a colour with a contrast of at least 4.5 on every ground', () => {
    for (let grey = 0; grey < 256; grey++) {
      const ground = `#${grey.toString(16).padStart(2, '0').repeat(3)}`;
      expect(computeContrast(ground, pickReadableColor(ground, ground))).toBeGreaterThanOrEqual(
        4.5,
      );
    }
  });
});
