import { describe, expect, it } from '@jest/globals';
import { findCountryOfTimeZone, listCountries, parseCountry } from './country.js';

describe('parseCountry', () => {
  it.each([
    ['DE', 'DE'],
    ['de', 'DE'],
    ['gB', 'GB'],
    ['AQ', 'AQ'],
  ])('parses %s as %s', (text, code) => {
    expect(parseCountry(text)).toBe(code);
  });

  // EU and UK are reserved, XK is in use, and ß is written SS in capitals: none is assigned.
  it.each(['', 'XX', 'UK', 'EU', 'XK', 'DEU', 'Germany', '49', 'ß', 'ﬁ', 'D E', 'DD'])(
    'refuses %j',
    (text) => {
      expect(parseCountry(text)).toBeUndefined();
    },
  );
});

describe('findCountryOfTimeZone', () => {
  it.each([
    ['Europe/Berlin', 'DE'],
    ['Europe/London', 'GB'],
    ['America/Chicago', 'US'],
    ['Asia/Kolkata', 'IN'],
    ['UTC', null],
  ])('finds for %s the country %s', (timeZone, country) => {
    expect(findCountryOfTimeZone(timeZone)).toBe(country);
  });
});

describe('listCountries', () => {
  it('lists 249 countries, each with a name', () => {
    const all = listCountries('en');
    expect(all).toHaveLength(249);
    expect(all[0]).toEqual({ code: 'AF', name: 'Afghanistan' });
    expect(all.filter(({ code, name }) => name === code)).toEqual([]);
  });
});
