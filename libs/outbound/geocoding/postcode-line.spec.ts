import { expect, it } from '@jest/globals';
import { parsePostcodeLine } from './postcode-line.js';

const LINE = 'GB\tSW1A 2AA\tLondon\tEngland\tENG\tGreater London\t\t\t\t51.5035\t-0.1277\t6';

it('parsePostcodeLine parses a line of a GeoNames file', () => {
  expect(parsePostcodeLine(LINE)).toEqual({
    country: 'GB',
    postcode: 'SW1A2AA',
    place: 'london',
    latitude: 51.5035,
    longitude: -0.1277,
  });
});

it('parsePostcodeLine returns undefined for any other line', () => {
  for (const line of [
    '',
    'country code\tpostal code\tplace name',
    LINE.replace('GB', 'gb'),
    LINE.replace('51.5035', 'north'),
    LINE.replace('51.5035', ''),
    LINE.replace('-0.1277', '181'),
    LINE.replace('SW1A 2AA', '-'),
  ]) {
    expect(parsePostcodeLine(line)).toBeUndefined();
  }
});
