import { describe, expect, it } from '@jest/globals';
import { findLastServed } from './job-queue.js';

describe('findLastServed', () => {
  it('returns the last id in the order of turns', () => {
    expect(findLastServed(0, [3, 1, 2])).toBe(3);
    expect(findLastServed(5, [7, 2, 6, 5])).toBe(5);
    expect(findLastServed(5, [7, 9])).toBe(9);
  });

  it('returns the previous id when none was served', () => {
    expect(findLastServed(5, [])).toBe(5);
  });
});
