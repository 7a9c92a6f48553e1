import { describe, expect, it } from '@jest/globals';
import { listSmsCountries } from './sms-countries.js';

describe('the countries that a store sends SMS to', () => {
  it.each([
    ['de-AT', [], ['AT']],
    ['de-AT', ['CH', 'DE'], ['AT', 'CH', 'DE']],
    ['zh-Hant-TW', [], ['TW']],
    ['de', ['CH'], ['CH']],
    ['de', [], []],
    ['en-001', [], []],
    ['es-419', [], []],
  ])('%s with %j are %j', (locale, smsCountries, countries) => {
    expect(listSmsCountries({ locale, smsCountries })).toEqual(countries);
  });

  it('are its own where it was made before there were others', () => {
    expect(listSmsCountries({ locale: 'de-AT' })).toEqual(['AT']);
  });
});
