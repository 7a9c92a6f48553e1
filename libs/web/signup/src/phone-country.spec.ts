import { describe, expect, it } from '@jest/globals';
import { countryOf, phoneIn } from './phone-country.js';

describe('the country of a store', () => {
  it.each([
    ['de-AT', 'Europe/Berlin', 'AT'],
    ['de', 'Europe/Berlin', 'DE'],
    ['en', 'Asia/Kolkata', 'IN'],
    ['en', 'America/Argentina/Buenos_Aires', 'AR'],
    ['zh-Hant-TW', 'UTC', 'TW'],
    ['en', 'UTC', undefined],
    ['en-001', 'Etc/GMT+5', undefined],
  ])('of %s in %s is %s', (locale, timeZone, country) => {
    expect(countryOf({ locale, timeZone })).toBe(country);
  });
});

describe('a phone number', () => {
  it.each([
    ['DE', '0151 / 123 456 78', '+4915112345678'],
    ['DE', '+43 664 1234567', '+436641234567'],
    ['DE', '0043 664 1234567', '+436641234567'],
    ['US', '(212) 555-0123', '+12125550123'],
    [undefined, '+49 30 1234567', '+49301234567'],
    [undefined, '030 1234567', undefined],
    ['DE', '12', undefined],
    ['DE', '0151 123456781234567', undefined],
    ['DE', 'call me', undefined],
    ['DE', 'call +49 30 1234567', undefined],
  ] as const)('given in %s as %s is %s', (country, given, number) => {
    expect(phoneIn(country, given)).toBe(number);
  });
});
