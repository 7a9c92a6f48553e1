import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { packageFile } from '#kernel/package-file.js';
import { placeKey } from './place-key.js';

it('is the same however a name is written', () => {
  expect(placeKey(' MÜNCHEN ')).toBe('munchen');
  expect(placeKey("'s-Gravenhage")).toBe('s gravenhage');
  expect(placeKey('Łódź')).toBe('lodz');
  expect(placeKey('Gießen')).toBe('giessen');
  expect(placeKey('St. Gallen')).toBe('st gallen');
  expect(placeKey('Αθήνα')).toBe('αθηνα');
});

it('is what the places that Inkpad comes with are filed under', () => {
  const text = brotliDecompressSync(readFileSync(packageFile('data/places.tsv.br'))).toString();
  const lines = text.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(150_000);
  for (let i = 0; i < lines.length; i += 97) {
    const fields = lines[i]?.split('\t') ?? [];
    const keys = fields[5]?.split('|') ?? [];
    expect(keys.map(placeKey)).toEqual(keys);
    expect(fields.slice(2, 5).every((number) => Number.isFinite(Number(number)))).toBe(true);
  }
});
