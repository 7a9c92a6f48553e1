import { describe, expect, it } from '@jest/globals';
import { listSmsCountries } from './sms-countries.js';

describe('listSmsCountries', () => {
  it.each([
    ['AT', [], ['AT']],
    ['AT', ['CH', 'DE'], ['AT', 'CH', 'DE']],
    [null, ['CH'], ['CH']],
    [null, [], []],
  ])(
    'with the country %s and the SMS countries %j returns %j',
    (country, smsCountries, countries) => {
      expect(listSmsCountries({ country, smsCountries })).toEqual(countries);
    },
  );

  it('returns the country alone for a store without SMS countries in its state', () => {
    expect(listSmsCountries({ country: 'AT' })).toEqual(['AT']);
  });
});
