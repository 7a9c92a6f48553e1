import { describe, expect, it } from '@jest/globals';
import qrcode from 'qrcode';
import { renderQrCode } from './qr-code.js';

describe('renderQrCode', () => {
  it('draws every dark module and no other, within a quiet zone of four modules', () => {
    const { size, data } = qrcode.create('ABCD2345', { errorCorrectionLevel: 'M' }).modules;
    const svg = renderQrCode('ABCD2345', 'Code').text;
    expect(svg).toContain(`viewBox="0 0 ${size + 8} ${size + 8}"`);
    const drawnModules = new Set<number>();
    for (const [, x, y, length] of svg.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
      for (let i = 0; i < Number(length); i++) {
        drawnModules.add((Number(y) - 4) * size + Number(x) - 4 + i);
      }
    }
    const darkModules = [...data.keys()].filter((at) => data[at]);
    expect([...drawnModules].sort((a, b) => a - b)).toEqual(darkModules);
  });

  it('escapes its label', () => {
    expect(renderQrCode('A', '"><script>').text).toContain('aria-label="&quot;&gt;&lt;script&gt;"');
  });
});
