import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { BEGINNING } from './event-store.js';
import { formatPosition, isAfter, parsePosition } from './position.js';

const position = fc.record({
  commit: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  prepare: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
});

describe('a position', () => {
  it('is unchanged after formatPosition and parsePosition', () => {
    fc.assert(
      fc.property(position, (value) => expect(parsePosition(formatPosition(value))).toEqual(value)),
    );
    expect(formatPosition(BEGINNING)).toBe('00000000000000000000:00000000000000000000');
  });

  it('sorts as text the way isAfter sorts it: by commit, then by prepare', () => {
    fc.assert(
      fc.property(position, position, (one, other) =>
        expect(isAfter(one, other)).toBe(formatPosition(one) > formatPosition(other)),
      ),
    );
    const at = { commit: 9n, prepare: 10n };
    expect(isAfter(at, at)).toBe(false);
    expect(isAfter({ commit: 9n, prepare: 11n }, at)).toBe(true);
    expect(isAfter({ commit: 10n, prepare: 1n }, at)).toBe(true);
    expect(isAfter({ commit: 8n, prepare: 99n }, at)).toBe(false);
  });

  it.each(['', '12'])('cannot be parsed from %j', (text) => {
    expect(() => parsePosition(text)).toThrow('no position');
  });

  it('cannot be parsed from parts that are not numbers', () => {
    expect(() => parsePosition('x:y')).toThrow();
  });
});
