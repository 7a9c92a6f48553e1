import { describe, expect, it } from '@jest/globals';
import { toCanonicalJson } from './canonical-json.js';

describe('toCanonicalJson', () => {
  it('sorts the names of all objects by their UTF-16 code units (RFC 8785, section 3.2.3)', () => {
    const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
    const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'];
    const input = Object.fromEntries(names.map((name) => [name, { b: 1, a: [{ d: 2, c: 3 }] }]));
    expect(toCanonicalJson(input)).toBe(
      `{${sorted.map((name) => `${JSON.stringify(name)}:{"a":[{"c":3,"d":2}],"b":1}`).join(',')}}`,
    );
  });

  it('sorts the names of large objects in the same way', () => {
    const names = Array.from({ length: 500 }, (_, i) => `n${(i * 7919) % 500}`);
    const text = toCanonicalJson(Object.fromEntries(names.map((name) => [name, null])));
    const sorted = [...names].sort();
    expect(text).toBe(`{${sorted.map((name) => `"${name}":null`).join(',')}}`);
  });

  it('writes numbers and texts as JavaScript does (RFC 8785, sections 3.2.2.2 and 3.2.2.3)', () => {
    const input = [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0];
    expect(toCanonicalJson(input)).toBe('[333333333.3333333,1e+30,4.5,0.002,1e-27,0]');
    expect(toCanonicalJson('\u20ac$\u000f\nA\'B"\\"/')).toBe(String.raw`"€$\u000f\nA'B\"\\\"/"`);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, undefined, () => 1, { a: Number.NaN }])(
    'refuses %p, which has no JSON',
    (value) => {
      expect(() => toCanonicalJson(value)).toThrow(/JSON|stringified/);
    },
  );
});
