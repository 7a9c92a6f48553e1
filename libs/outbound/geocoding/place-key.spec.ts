import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';
import { toPlaceKey } from './place-key.js';

it('toPlaceKey returns the same key for all spellings of a name', () => {
  expect(toPlaceKey(' MÜNCHEN ')).toBe('munchen');
  expect(toPlaceKey("'s-Gravenhage")).toBe('s gravenhage');
  expect(toPlaceKey('Łódź')).toBe('lodz');
  expect(toPlaceKey('Gießen')).toBe('giessen');
  expect(toPlaceKey('St. Gallen')).toBe('st gallen');
  expect(toPlaceKey('Αθήνα')).toBe('αθηνα');
});

it('toPlaceKey leaves the keys of the bundled places as they are', () => {
  const text = brotliDecompressSync(
    readFileSync(getPackageFileUrl('data/places.tsv.br')),
  ).toString();
  const lines = text.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(150_000);
  for (let i = 0; i < lines.length; i += 97) {
    const fields = lines[i]?.split('\t') ?? [];
    const keys = fields[5]?.split('|') ?? [];
    expect(keys.map(toPlaceKey)).toEqual(keys);
    expect(fields.slice(2, 5).every((number) => Number.isFinite(Number(number)))).toBe(true);
  }
});
