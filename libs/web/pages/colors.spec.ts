import { describe, expect, it } from '@jest/globals';
import { computeContrast } from '#platform/kernel/contrast.js';
import { pickReadableColor } from './colors.js';

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
