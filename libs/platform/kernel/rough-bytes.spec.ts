import { describe, expect, it } from '@jest/globals';
import { estimateBytes } from './rough-bytes.js';

describe('estimateBytes', () => {
  it('counts two bytes a character for a text that has one beyond Latin-1', () => {
    expect(estimateBytes('é'.repeat(100))).toBe(116);
    expect(estimateBytes(`${'é'.repeat(99)}Ж`)).toBe(216);
  });

  it('counts the entries of a map', () => {
    expect(estimateBytes(new Map([[1, { a: 'b' }]]))).toBeGreaterThan(
      estimateBytes(new Map<number, object>()),
    );
  });

  it('counts the memory behind a buffer instead of reading its bytes', () => {
    const size = estimateBytes({ key: Buffer.allocUnsafeSlow(32) });
    expect(size).toBeGreaterThan(400);
    expect(size).toBeLessThan(600);
    expect(estimateBytes(Buffer.alloc(100_000).subarray(0, 10))).toBeGreaterThan(100_000);
  });

  it.each([null, undefined, 1, true])('counts 16 bytes for %s', (value) => {
    expect(estimateBytes(value)).toBe(16);
  });
});
