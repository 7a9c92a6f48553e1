import { describe, expect, it } from '@jest/globals';
import { listSmsCountries } from './sms-countries.js';

describe('the countries that a store sends SMS to', () => {
  it.each([
    ['AT', [], ['AT']],
    ['AT', ['CH', 'DE'], ['AT', 'CH', 'DE']],
    [null, ['CH'], ['CH']],
    [null, [], []],
  ])('%s with %j are %j', (country, smsCountries, countries) => {
    expect(listSmsCountries({ country, smsCountries })).toEqual(countries);
  });

  it('are its own where it was made before there were others', () => {
    expect(listSmsCountries({ country: 'AT' })).toEqual(['AT']);
  });
});
