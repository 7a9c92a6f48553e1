import { describe, expect, it } from '@jest/globals';
import { BARCODE_FORMATS, findBarcodeError } from './barcode.js';

describe('findBarcodeError', () => {
  it('accepts the code of a card in every format', () => {
    for (const format of BARCODE_FORMATS) {
      expect(findBarcodeError(format, 'K7Q2M9XA')).toBeUndefined();
    }
  });

  it('refuses what a Code 128 cannot hold, or a scanner cannot read from a phone', () => {
    expect(findBarcodeError('code128', 'A'.repeat(20))).toBeUndefined();
    expect(findBarcodeError('code128', 'A'.repeat(21))).toMatch(/at most 20/);
    expect(findBarcodeError('code128', 'Café')).toMatch(/ASCII/);
    expect(findBarcodeError('code128', '')).toMatch(/ASCII/);
  });

  it('refuses what the encoding of passes does not have', () => {
    expect(findBarcodeError('qr', 'Café')).toBeUndefined();
    expect(findBarcodeError('aztec', 'Кофе')).toMatch(/Latin-1/);
    expect(findBarcodeError('pdf417', 'a'.repeat(201))).toMatch(/at most 200/);
  });
});
