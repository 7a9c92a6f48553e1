import { describe, expect, it } from '@jest/globals';
import qrcode from 'qrcode';
import { findDarkModules } from './qr-modules.js';

describe('findDarkModules', () => {
  it('draws every dark module and no other, within a quiet zone of four modules', () => {
    const { size, data } = qrcode.create('ABCD2345', { errorCorrectionLevel: 'M' }).modules;
    const { path, side } = findDarkModules('ABCD2345', 'M');
    expect(side).toBe(size + 8);
    const drawnModules = new Set<number>();
    for (const [, x, y, length] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
      for (let i = 0; i < Number(length); i++) {
        drawnModules.add((Number(y) - 4) * size + Number(x) - 4 + i);
      }
    }
    const darkModules = [...data.keys()].filter((at) => data[at]);
    expect([...drawnModules].sort((a, b) => a - b)).toEqual(darkModules);
  });
});
