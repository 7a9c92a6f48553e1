import { describe, expect, it } from '@jest/globals';
import { computeContrast, mixColors } from './contrast.js';

describe('computeContrast', () => {
  it('computes the ratio of WCAG', () => {
    expect(computeContrast('#000000', '#FFFFFF')).toBeCloseTo(21, 5);
    expect(computeContrast('#FFFFFF', '#777777')).toBeCloseTo(4.48, 2);
    expect(computeContrast('#123456', '#123456')).toBe(1);
  });
});

describe('mixColors', () => {
  it('mixes two colours by the opacity of the upper one', () => {
    expect(mixColors('#000000', '#FFFFFF', 0.5)).toBe('#808080');
    expect(mixColors('#102030', '#FFFFFF', 0)).toBe('#102030');
    expect(mixColors('#102030', '#0A0B0C', 1)).toBe('#0A0B0C');
  });
});
