import { describe, expect, it } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { canonicalJson } from './canonical-json.js';

describe('canonical JSON', () => {
  it('is what the reference implementation writes', () => {
    const value = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' });
    fc.assert(
      fc.property(value, (given) => expect(canonicalJson(given)).toBe(canonicalize(given))),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [{ b: 1, a: 2 }, '{"a":2,"b":1}'],
    [{ 10: 'ten', 9: 'nine', é: 1, '\u20ac': 2 }, '{"10":"ten","9":"nine","é":1,"€":2}'],
    [{ a: undefined, 'a\0b': 1, b: [{}, []] }, '{"a\\u0000b":1,"b":[{},[]]}'],
    [{ a: 1e21, b: -0, c: 1e-7 }, '{"a":1e+21,"b":0,"c":1e-7}'],
  ])('of %j', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
    expect(canonicalize(value)).toBe(text);
  });

  it('of objects that begin with the same names but go on differently', () => {
    const values = [
      { b: 1, a: 2 },
      { b: 1, a: 2, c: 3 },
      { b: 1 },
      { b: 1, c: 3 },
      { b: 1, A: 2 },
      { b: 1, a: 2 },
    ];
    for (const value of [...values, ...values])
      expect(canonicalJson(value)).toBe(canonicalize(value));
  });

  it.each([31, 32, 33, 100])('sorts %i names', (count) => {
    const names = Array.from({ length: count }, (_, i) => `n${(i * 37) % count}`);
    const value = Object.fromEntries(names.map((name, i) => [name, i]));
    expect(canonicalJson(value)).toBe(canonicalize(value));
  });

  it.each([1n, undefined, Symbol('s'), () => 1, [undefined], { a: 1n }])('refuses %p', (value) =>
    expect(() => canonicalJson(value)).toThrow('has no JSON'),
  );

  it.each([Number.NaN, Number.POSITIVE_INFINITY, '\ud800', { '\udc00': 1 }])(
    'refuses %p, which JSON has no text for',
    (value) => expect(() => canonicalJson(value)).toThrow(),
  );
});
