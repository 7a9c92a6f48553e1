import { describe, expect, it } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { hashCanonically, toCanonicalJson } from './canonical-json.js';

describe('toCanonicalJson', () => {
  it('writes the same text as the reference implementation', () => {
    const value = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' });
    fc.assert(
      fc.property(value, (json) => expect(toCanonicalJson(json)).toBe(canonicalize(json))),
      { numRuns: 2_000 },
    );
  });

  it.each([
    [{ b: 1, a: 2 }, '{"a":2,"b":1}'],
    [{ 10: 'ten', 9: 'nine', é: 1, '\u20ac': 2 }, '{"10":"ten","9":"nine","é":1,"€":2}'],
    [{ a: undefined, 'a\0b': 1, b: [{}, []] }, '{"a\\u0000b":1,"b":[{},[]]}'],
    [{ a: 1e21, b: -0, c: 1e-7 }, '{"a":1e+21,"b":0,"c":1e-7}'],
  ])('writes %j as %s', (value, text) => {
    expect(toCanonicalJson(value)).toBe(text);
    expect(canonicalize(value)).toBe(text);
  });

  it('writes objects that begin with the same names but continue differently', () => {
    const values = [
      { b: 1, a: 2 },
      { b: 1, a: 2, c: 3 },
      { b: 1 },
      { b: 1, c: 3 },
      { b: 1, A: 2 },
      { b: 1, a: 2 },
    ];
    for (const value of [...values, ...values])
      expect(toCanonicalJson(value)).toBe(canonicalize(value));
  });

  it.each([31, 32, 33, 100])('sorts %i names', (count) => {
    const names = Array.from({ length: count }, (_, i) => `n${(i * 37) % count}`);
    const value = Object.fromEntries(names.map((name, i) => [name, i]));
    expect(toCanonicalJson(value)).toBe(canonicalize(value));
  });

  it('tells objects apart that begin with the same name, however many and long their names are', () => {
    const long = 'x'.repeat(65);
    for (const names of [
      ['a', long],
      ['a', 'b', long],
      [long, 'a'],
      [long, 'b'],
      ['', 'a'],
      ['a', ''],
    ]) {
      for (const order of [names, names.toReversed(), names]) {
        const value = Object.fromEntries(order.map((name, i) => [name, i]));
        expect(toCanonicalJson(value)).toBe(canonicalize(value));
      }
    }
    // More shapes than the cache holds.
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 200; i++) {
        const value = { [`n${i}`]: i, b: true, a: false, [`m${i}`]: null };
        expect(toCanonicalJson(value)).toBe(canonicalize(value));
      }
    }
  });

  it.each([
    [1n, 'a bigint has no JSON'],
    [undefined, 'a undefined has no JSON'],
    [Symbol('s'), 'a symbol has no JSON'],
    [() => 1, 'a function has no JSON'],
    [[undefined], 'a undefined has no JSON'],
    [{ a: 1n }, 'a bigint has no JSON'],
    [Number.NaN, 'NaN has no JSON'],
    [Number.POSITIVE_INFINITY, 'Infinity has no JSON'],
    ['\ud800', 'a lone surrogate has no JSON'],
    [{ '\udc00': 1 }, 'a lone surrogate has no JSON'],
  ])('refuses %p', (value, message) =>
    expect(() => toCanonicalJson(value)).toThrow(new Error(message)),
  );

  it('writes values longer than any event, and short ones after them', () => {
    const long = 100_000;
    for (const value of [
      'x'.repeat(long),
      '€'.repeat(long),
      `${'x'.repeat(long)}€"`,
      Array.from({ length: long }, (_, i) => i),
      Array.from({ length: long }, () => [{}]),
      Object.fromEntries(Array.from({ length: long }, (_, i) => [`né${i}`, 'ü'])),
      { a: 1 },
    ]) {
      expect(toCanonicalJson(value) === canonicalize(value)).toBe(true);
    }
  });

  it('writes the next value correctly after it refused one', () => {
    expect(() => toCanonicalJson({ a: [1, { b: 2n }] })).toThrow();
    expect(toCanonicalJson([1])).toBe('[1]');
  });

  it('does not reorder the names in the value itself', () => {
    const value = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`n${99 - i}`, i]));
    const names = Object.keys(value);
    toCanonicalJson(value);
    expect(Object.keys(value)).toEqual(names);
  });
});

describe('hashCanonically', () => {
  it('hashes a text followed by the canonical JSON of a value', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 100 });
    fc.assert(
      fc.property(text, fc.jsonValue(), (before, value) => {
        const hash = createHash('sha256')
          .update(`${before}${canonicalize(value)}`)
          .digest('hex');
        expect(hashCanonically(before, value)).toBe(hash);
      }),
    );
  });
});
