import { describe, expect, it } from '@jest/globals';
import { estimateBytes } from './rough-bytes.js';

describe('roughBytes', () => {
  it('counts a text with a character beyond Latin-1 twice, as it is held', () => {
    expect(estimateBytes('é'.repeat(100))).toBe(116);
    expect(estimateBytes(`${'é'.repeat(99)}Ж`)).toBe(216);
  });

  it('counts what maps hold', () => {
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

  it.each([null, undefined, 1, true])('counts %s', (value) => {
    expect(estimateBytes(value)).toBe(16);
  });
});
