import { describe, expect, it } from '@jest/globals';
import { isDiallable, isSamePhone, normalizePhone } from './contact.js';
import {
  findDigitsOfToday,
  getPhoneKey,
  listPhoneSpellings,
  modernizeNumber,
} from './phone-plans.js';

const read = (text: string, country: string | null = null) => normalizePhone(text, country);

describe('one telephone is one number', () => {
  it.each<[string, string, (string | [string, string])[]]>([
    [
      'Mexico',
      '+525512345678',
      [
        '+52 55 1234 5678',
        '+52 1 55 1234 5678',
        '+5215512345678',
        '0052 1 55 1234 5678',
        '+52 01 55 1234 5678',
        '+52 044 55 1234 5678',
        '+52 045 55 1234 5678',
        ['55 1234 5678', 'MX'],
        ['(55) 1234-5678', 'MX'],
        ['1 55 1234 5678', 'MX'],
        ['01 55 1234 5678', 'MX'],
        ['044 55 1234 5678', 'MX'],
        ['045 55 1234 5678', 'MX'],
        ['52 55 1234 5678', 'MX'],
        ['521 55 1234 5678', 'MX'],
        ['00 52 1 55 1234 5678', 'US'],
        ['011 52 1 55 1234 5678', 'US'],
      ],
    ],
    [
      'Argentina',
      '+5491123456789',
      [
        '+54 9 11 2345 6789',
        '+54 9 11 15 2345-6789',
        '+54 11 15 2345 6789',
        '0054 9 11 15 2345 6789',
        '+54 9 011 15 2345 6789',
        ['011 15 2345 6789', 'AR'],
        ['11 15 2345-6789', 'AR'],
        ['54 9 11 2345 6789', 'AR'],
        ['54 9 11 15 2345 6789', 'AR'],
      ],
    ],
    [
      'Argentina, Córdoba',
      '+5493512345678',
      [
        '+54 9 351 234 5678',
        '+54 9 351 15 234 5678',
        '+54 351 15 234 5678',
        ['0351 15 234 5678', 'AR'],
        ['351 15 234-5678', 'AR'],
      ],
    ],
    [
      'Brazil',
      '+5511981234567',
      [
        '+55 11 98123-4567',
        '+55 11 8123-4567',
        ['551181234567', 'BR'],
        ['(11) 8123-4567', 'BR'],
        ['011 8123-4567', 'BR'],
      ],
    ],
    ['Ivory Coast, Orange', '+2250707123456', ['+225 07 12 34 56', '00225 07123456']],
    ['Ivory Coast, MTN', '+2250545123456', ['+225 45 12 34 56', ['45 12 34 56', 'CI']]],
    ['Ivory Coast, Moov', '+2250101123456', ['+225 01 12 34 56', ['01 12 34 56', 'CI']]],
    [
      'Benin',
      '+2290197123456',
      ['+229 97 12 34 56', '+229 01 97 12 34 56', ['97 12 34 56', 'BJ'], ['229 97123456', 'BJ']],
    ],
    [
      'Italy, mobile',
      '+393401234567',
      ['+39 340 123 4567', '+39 0340 123 4567', ['0340 123 4567', 'IT'], ['340 1234567', 'IT']],
    ],
    ['Italy, fixed', '+390212345678', ['+39 02 1234 5678', '+39 2 1234 5678', '+39 (0)2 12345678']],
    ['Vietnam', '+84321234567', ['+84 162 123 4567', ['0162 123 4567', 'VN'], '+84 0162 1234567']],
    ['Vietnam, MobiFone', '+84701234567', ['+84 120 123 4567', ['0120 123 4567', 'VN']]],
    ['Vietnam, Vinaphone', '+84811234567', ['+84 127 123 4567']],
    ['Cameroon', '+237677123456', ['+237 77 12 34 56', ['77 12 34 56', 'CM']]],
    ['Cameroon, fixed', '+237222201234', ['+237 22 20 12 34']],
    [
      'Gabon',
      '+24177123456',
      ['+241 07 12 34 56', '+241 7 12 34 56', '+241 077 12 34 56', ['077 12 34 56', 'GA']],
    ],
    ['Gabon, Moov', '+24166123456', ['+241 06 12 34 56', ['06 12 34 56', 'GA']]],
    ['Colombia', '+576012345678', ['+57 1 234 5678', '+57 601 234 5678']],
    ['Chile', '+56221234567', ['+56 2 212 34567', '+56 2 1234567']],
    ['Ecuador', '+593991234567', ['+593 9 912 34567', '+593 99 123 4567', ['09 912 34567', 'EC']]],
    ['Egypt', '+201001234567', ['+20 10 123 4567', '+20 100 123 4567', ['010 123 4567', 'EG']]],
    ['Egypt, Vodafone', '+201061234567', ['+20 16 123 4567', ['016 123 4567', 'EG']]],
    ['Mauritius', '+23052512345', ['+230 251 2345', ['251 2345', 'MU']]],
  ])('%s: %s', (_, phone, spellings) => {
    for (const spelling of spellings) {
      const [text, country] = typeof spelling === 'string' ? [spelling] : spelling;
      expect([spelling, read(text, country)]).toEqual([spelling, phone]);
    }
    expect(modernizeNumber(phone)).toBe(phone);
    expect(isDiallable(phone)).toBe(true);
  });

  it.each([
    // Networks of trunked radio have kept eight digits.
    '+551178123456',
    '+551131234567',
    '+2250707123456',
    '+393331234567',
    '+390669812345',
    '+39800123456',
    '+541143211234',
    '+56981234567',
    '+573101234567',
    '+84912345678',
    '+842438251234',
    '+2304601234',
    '+12125550123',
    '+4915112345678',
    '+999123456',
    '+52155',
  ])('leaves %s as it is', (phone) => {
    expect(modernizeNumber(phone)).toBe(phone);
    expect(read(phone)).toBe(phone);
  });
});

describe('findDigitsOfToday', () => {
  it.each([
    ['+22521212121', 10],
    ['+6321234567', 9],
    ['+22460123456', 9],
  ])('tells of %s that its country has %i digits now', (phone, digits) => {
    expect(read(phone)).toBe(phone);
    expect(findDigitsOfToday(phone)).toBe(digits);
    expect(isDiallable(phone)).toBe(false);
  });

  it.each(['+2250707123456', '+2252721212121', '+63281234567', '+639171234567', '+224620123456', '+4930123456', '12'])(
    'finds nothing missing in %s',
    (phone) => {
      expect(findDigitsOfToday(phone)).toBeUndefined();
    },
  ); // prettier-ignore
});

describe('the key of a number', () => {
  it('is the same with the 9 of Argentina and without', () => {
    expect(getPhoneKey('+5491123456789')).toBe(getPhoneKey('+541123456789'));
    expect(isSamePhone('+5491123456789', '+541123456789')).toBe(true);
    expect(isSamePhone('+5491123456789', '1123456789')).toBe(true);
    expect(isSamePhone('+5491123456789', '+541123456780')).toBe(false);
    expect(listPhoneSpellings('+541123456789')).toEqual(['+541123456789', '+5491123456789']);
    expect(listPhoneSpellings('+5491123456789')).toEqual(['+541123456789', '+5491123456789']);
  });

  it('is the number itself elsewhere', () => {
    for (const phone of ['+4915112345678', '01711234567', '5491123456789']) {
      expect(getPhoneKey(phone)).toBe(phone);
      expect(listPhoneSpellings(phone)).toEqual([phone]);
    }
  });
});
