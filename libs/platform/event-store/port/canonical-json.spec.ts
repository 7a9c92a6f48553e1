import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sortNames, toCanonicalJson } from './canonical-json.js';

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

  it('writes the same whether the names are in order already or not', () => {
    const name = fc.oneof(fc.string({ unit: 'binary' }), fc.nat(20).map(String));
    const { value: anything } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(null, true, -0),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.string({ unit: 'binary' }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(name, tie('value'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(anything, (value) => {
        expect(toCanonicalJson(sortAll(value))).toBe(toCanonicalJson(reverseAll(value)));
      }),
    );
  });

  it('leaves out what has no value, and takes the JSON of an object that has its own', () => {
    expect(toCanonicalJson({ a: undefined, b: new Date(0), c: [1] })).toBe(
      '{"b":"1970-01-01T00:00:00.000Z","c":[1]}',
    );
  });
});

describe('sortNames', () => {
  it('sorts the names of an object and leaves its values alone', () => {
    const [one, other] = [{ z: 1, y: 2 }, [3]];
    const sorted = sortNames({ b: one, c: other, a: undefined });
    expect(Object.entries(sorted)).toEqual([
      ['a', undefined],
      ['b', one],
      ['c', other],
    ]);
    expect(sorted.b).toBe(one);
  });
});

function mapObjects(value: unknown, order: (names: string[]) => string[]): unknown {
  if (Array.isArray(value)) return value.map((element) => mapObjects(element, order));
  if (typeof value !== 'object' || value === null) return value;
  const entries = value as Record<string, unknown>;
  return Object.fromEntries(
    order(Object.keys(entries)).map((name) => [name, mapObjects(entries[name], order)]),
  );
}

const sortAll = (value: unknown) => mapObjects(value, (names) => names.sort());
const reverseAll = (value: unknown) => mapObjects(value, (names) => names.sort().reverse());
