import { describe, expect, it } from '@jest/globals';
import { lastServed } from './turns.js';

describe('the account that was served last', () => {
  it('is the one that comes last in the order of the turns', () => {
    expect(lastServed(0, [3, 1, 2])).toBe(3);
    expect(lastServed(5, [7, 2, 6, 5])).toBe(5);
    expect(lastServed(5, [7, 9])).toBe(9);
  });

  it('stays when there was none', () => {
    expect(lastServed(5, [])).toBe(5);
  });
});
