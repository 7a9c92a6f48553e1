import { describe, expect, it } from '@jest/globals';
import { BARCODE_FORMATS, findBarcodeIssue } from './barcode.js';

describe('findBarcodeIssue', () => {
  it('accepts the code of a card in every format', () => {
    for (const format of BARCODE_FORMATS) {
      expect(findBarcodeIssue(format, 'K7Q2M9XA')?.message).toBeUndefined();
    }
  });

  it('refuses what a Code 128 cannot hold, or a scanner cannot read from a phone', () => {
    expect(findBarcodeIssue('code128', 'A'.repeat(20))?.message).toBeUndefined();
    expect(findBarcodeIssue('code128', 'A'.repeat(21))?.message).toMatch(/at most 20/);
    expect(findBarcodeIssue('code128', 'Café')?.message).toMatch(/ASCII/);
    expect(findBarcodeIssue('code128', '')?.message).toMatch(/ASCII/);
  });

  it('refuses what the encoding of passes does not have', () => {
    expect(findBarcodeIssue('qr', 'Café')?.message).toBeUndefined();
    expect(findBarcodeIssue('aztec', 'Кофе')?.message).toMatch(/Latin-1/);
    expect(findBarcodeIssue('pdf417', 'a'.repeat(201))?.message).toMatch(/at most 200/);
  });
});
