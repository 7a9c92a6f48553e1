import { describe, expect, it } from '@jest/globals';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { Field } from '#platform/http/fields.js';
import { readFields } from '#platform/http/dtos.js';
import {
  emailKind,
  isDiallable,
  isSamePhone,
  isChangedNumber,
  maskPhone,
  normalizePhone,
  phoneKind,
  readPartOfPhone,
  readPhoneText,
} from './contact.js';

class Contact {
  @Field(phoneKind, { omittable: true }) declare readonly phone: string;
  @Field(emailKind, { omittable: true }) declare readonly email: string;
}

/** Reads a phone number of a request, and returns its stored form in a store of the country. */
const read = (input: unknown, country: string | null = null) => {
  try {
    return normalizePhone(readFields(Contact, { phone: input }).phone, country);
  } catch (error) {
    if (error instanceof InvalidFieldsError) return error.errors.phone;
    throw error;
  }
};

describe('phoneKind', () => {
  it.each([
    ['+49 171 1234567', 'as people write it'],
    ['\u202A+49 171 1234567\u202C', 'as a phone book copies it'],
    ['\u200E+49\u00A0171\u00A01234567\u200E', 'with marks and hard spaces'],
    ['+49\u200B171\u00AD1234567\uFEFF', 'with invisible characters inside'],
    ['\u2066+49\u2069\u2060171 1234567', 'with an invisible character before the plus'],
    ['＋４９ １７１ １２３４５６７', 'in wide digits'],
    ['+٤٩ ١٧١ ١٢٣٤٥٦٧', 'in Arabic digits'],
    ['+४९ १७१ १२३४५६७', 'in Devanagari digits'],
    ['+49 171 ١٢٣٤٥٦٧', 'in digits of two scripts'],
    ['﹢49 171 1234567', 'with a small plus'],
    ['(+49) 171 1234567', 'with the country in brackets'],
    ['（＋４９）１７１ー１２３４５６７', 'as a Japanese keyboard writes it'],
    ['+49‑171–1234567', 'with other dashes'],
    ['+49.171.123.45.67', 'with dots'],
    ['+49 (0)171 / 12 34 567', 'with the digit to leave out'],
    ["'+49 171 1234567", 'as a spreadsheet keeps a text'],
    ['+49−171～1234567', 'with a minus and a tilde'],
  ])('reads %j, %s', (input) => {
    expect(read(input)).toBe('+491711234567');
  });

  it.each([
    ['٠٥٠ ١٢٣', '050123'],
    ['050 ١٢٣', '050123'],
    ['０３－１２３４－５６７８', '0312345678'],
    ['\u200F050 123\u200F', '050123'],
    ['(0151) 18-18.18', '0151181818'],
    ['030.1234567', '0301234567'],
    ['0171.123.45.67', '01711234567'],
    ['0171.123.45.00', '01711234500'],
    ['030.1234560', '0301234560'],
    ['0211.8618.0', '021186180'],
    ['030 8618-0', '03086180'],
    ['030/86180', '03086180'],
    ['4915112345678.', '4915112345678'],
  ])('reads %j as %s without a country', (input, digits) => {
    expect(read(input)).toBe(digits);
  });

  it.each([
    '0171 FLOWERS',
    '+49 171 1234567 ext. 5',
    '0171 1234567 x5',
    '0171 1234567 (mobile)',
    'tel:+491711234567',
    '0171 1234567, 0172 1234567',
    '0171 1234567;5',
    '0171 1234567#5',
    '*100#',
    '²³ 123456',
    '①②③ 456',
    '½ 12345',
    '五 12345',
    '🇩🇪 0171 1234567',
    '0171+1234567',
    '+49+171',
    '++49171',
    '=0171',
    'O171 123',
    '0171 12З',
    '+',
    '-',
    '\u200E()',
  ])('refuses %j instead of dropping characters', (input) => {
    expect(read(input)).toEqual(['must be a phone number']);
  });

  it.each([
    '4.91711E+11',
    '4,91711E+11',
    '4.91711e11',
    '4.91711E+011',
    '4.91711E11',
    '-4.9E+11',
    '+4.9E+11',
    '49E10',
    '4.91711 E+11',
    '４．９１７１１Ｅ＋１１',
    '٤٫٩١٧١١E+١١',
    '4.91711x10^11',
    '4.91711 × 10^11',
    '\u200E4.91711E+11\u200B',
    '4915112345678.0',
    '4915112345678.00',
    '4915112345678.000000',
    '4915112345678,0',
    '4915112345678,00',
    '4915112345678٫0',
    '+4915112345678.0',
    '-4915112345678.0',
    "'4915112345678.0",
    ' 4915112345678.0\r',
    '4915112345678 .0',
    '49 151 12345678.0',
    '015112345678.0',
    '030.0',
    '４９１５１１２３４５６７８．０',
    '٤٩١٥١١٢٣٤٥٦٧٨٫٠',
  ])('reports that a spreadsheet has changed %j', (input) => {
    expect(isChangedNumber(input)).toBe(true);
    expect(read(input)).toEqual(['looks like a spreadsheet has changed it']);
  });

  it('refuses a text without visible characters as blank', () => {
    expect(read('\u200E \u3164')).toEqual(['must not be blank']);
  });
});

describe('normalizePhone', () => {
  it.each([
    [
      'DE',
      '+491711234567',
      [
        '0171 1234567',
        '0049 171 1234567',
        '49 171 1234567',
        '+49 (0)171-1234567',
        '(0171) 123 45 67',
        '171 1234567',
        '\u202A+49 171 1234567\u202C',
        '０１７１ １２３４５６７',
        '٠١٧١ ١٢٣٤٥٦٧',
        '＋४९ १७१ १२३४५६७',
        '+0049 171 1234567',
      ],
    ],
    ['DE', '+4930123456', ['030 123456', '030/12 34 56', '0049 30 123456', '+49 30 123456']],
    ['AT', '+436641234567', ['0664 1234567', '0043 664 1234567', '43 664 1234567']],
    [
      'IT',
      '+390212345678',
      ['02 1234 5678', '0039 02 12345678', '39 02 12345678', '+39 02 1234 5678'],
    ],
    ['IT', '+393331234567', ['333 123 4567', '0039 333 1234567', '39 333 1234567']],
    [
      'US',
      '+12125550123',
      ['(212) 555-0123', '1 212 555 0123', '1-212-555-0123', '001 212 555 0123', '212.555.0123'],
    ],
    ['US', '+491711234567', ['011 49 171 1234567', '+49 171 1234567', '0049 171 1234567']],
    [
      'GB',
      '+447911123456',
      ['07911 123456', '44 7911 123456', '0044 7911 123456', '+44 (0)7911 123456'],
    ],
    ['GB', '+442079460958', ['020 7946 0958', '(020) 7946 0958', '44 20 7946 0958']],
    [
      'BR',
      '+5511912345678',
      ['(11) 91234-5678', '011 91234-5678', '55 11 91234 5678', '0055 11 91234 5678'],
    ],
    ['NO', '+4722222222', ['22 22 22 22', '47 22 22 22 22', '0047 22222222']],
    ['SG', '+6591234567', ['9123 4567', '65 9123 4567', '0065 9123 4567', '+65 9123-4567']],
    [
      'AE',
      '+971501234567',
      ['050 123 4567', '٠٥٠ ١٢٣ ٤٥٦٧', '971 50 123 4567', '00971 50 123 4567'],
    ],
    ['AU', '+61412345678', ['0412 345 678', '61 412 345 678', '0061 412 345 678']],
    ['AU', '+491711234567', ['0011 49 171 1234567']],
    ['JP', '+819012345678', ['090-1234-5678', '81 90 1234 5678', '０９０ー１２３４ー５６７８']],
    ['FR', '+33612345678', ['06 12 34 56 78', '33 6 12 34 56 78', '+33 (0)6 12 34 56 78']],
  ])('with the country %s normalizes every notation of %s', (country, phone, notations) => {
    // prettier-ignore
    for (const notation of [...notations, phone]) expect([notation, read(notation, country)]).toEqual([notation, phone]);
  });

  it.each([
    [null, '0171 1234567', '01711234567'],
    [null, '49 171 1234567', '491711234567'],
    [null, '0049 171 1234567', '+491711234567'],
    [null, '011 49 171 1234567', '011491711234567'],
    // A country whose numbers the library does not know.
    ['AQ', '0171 1234567', '01711234567'],
    // Numbers of another country.
    ['US', '07911 123456', '07911123456'],
    ['US', '49 171 1234567', '491711234567'],
    ['SG', '0171 1234567', '01711234567'],
    // Too short, too long.
    ['DE', '12', '12'],
    ['US', '555-0123', '5550123'],
    ['DE', '0171 1234567 1234567', '017112345671234567'],
    [null, '00 12', '0012'],
    [null, '000 171', '000171'],
  ])('with the country %s returns %j as the digits %s', (country, input, digits) => {
    expect(read(input, country)).toBe(digits);
  });

  it.each([null, 'DE', 'US'])(
    'with the country %s refuses what is not a phone number',
    (country) => {
      for (const text of [
        '+12',
        '+',
        '+1234567890123456',
        '1'.repeat(33),
        'call me',
        '0171 1 x5',
      ]) {
        expect(read(text, country)).toEqual(['must be a phone number']);
      }
    },
  );

  it('does not change its own results', () => {
    for (const phone of ['+491711234567', '050123', '+999123456', '491711234567', '0012']) {
      expect(normalizePhone(phone, null)).toBe(phone);
    }
    for (const phone of ['+491711234567', '12', '+12125550123', '+999123456']) {
      expect(normalizePhone(phone, 'DE')).toBe(phone);
    }
  });

  it('reads a leading 0 as part of an area code, not before a country code', () => {
    // A number in Leer, whose area code is 0491.
    expect(normalizePhone('0491 711234567', 'DE')).toBe('+49491711234567');
    expect(normalizePhone('491 12345', 'DE')).toBe('+4949112345');
  });
});

describe('isDiallable', () => {
  it.each(['+4915112345678', '+49301234567', '+390212345678', '+12125550123', '+6591234567', '+4722222222'])(
    'accepts %s',
    (phone) => {
      expect(isDiallable(phone)).toBe(true);
    },
  ); // prettier-ignore

  it.each(['+4915112', '+49151123', '+121255501234', '+999123456', '+1212555', '015112', '12'])('refuses %s', (phone) => {
    expect(isDiallable(phone)).toBe(false);
  }); // prettier-ignore
});

describe('isSamePhone', () => {
  it.each([
    ['+491711234567', '01711234567', true],
    ['491711234567', '+491711234567', true],
    ['+491711234567', '+491711234567', true],
    ['01711234567', '01711234567', true],
    [null, null, true],
    ['+491711234567', '+431711234567', false],
    ['01711234567', '1711234567', false],
    ['+491711234567', '01711234568', false],
    ['+491711234567', null, false],
  ])('compares %s with %s: %s', (a, b, isSame) => {
    expect(isSamePhone(a, b)).toBe(isSame);
    expect(isSamePhone(b, a)).toBe(isSame);
  });
});

describe('readPartOfPhone', () => {
  it.each([
    ['DE', '0171', '0171', ['49171']],
    ['DE', '0171 12', '017112', ['4917112']],
    ['DE', '0171 1234567', '01711234567', ['491711234567']],
    ['DE', '49171', '49171', []],
    ['DE', '49 171 1234567', '491711234567', []],
    ['DE', '+49 171', '49171', []],
    ['DE', '0049 171', '0049171', ['49171']],
    [null, '0049 171', '0049171', ['49171']],
    [null, '0171', '0171', []],
    ['DE', '4567', '4567', []],
    ['GB', '020 7946', '0207946', ['44207946']],
    ['IT', '02 12', '0212', []],
    ['US', '(212) 555', '212555', []],
    ['US', '011 49 171', '01149171', ['49171']],
    ['DE', '٠١٧١', '0171', ['49171']],
    ['DE', '030.0', '0300', ['49300']],
    ['DE', '0171.000', '0171000', ['49171000']],
  ])(
    'with the country %s reads %j as %j anywhere, or %j at the start',
    (country, term, anywhere, atStart) => {
      expect(readPartOfPhone(term, country)).toEqual({ anywhere, atStart });
    },
  );

  it('finds no number in a text with letters, without digits, or that a spreadsheet has changed', () => {
    for (const term of ['Anna', '49a', '+-', '4.9E+12', '4915112345678.0', '0151 12345678,00'])
      expect(readPartOfPhone(term, 'DE')).toBeUndefined();
  });
});

describe('maskPhone', () => {
  it('shows the first and the last two digits only', () => {
    expect(maskPhone('+491711234567')).toBe('+49…67');
  });
});

describe('readPhoneText', () => {
  it.each(['Anna', 'anna@example.com', '12%', '5_5', 'K7QX2M9P', ''])(
    'finds no number in %j',
    (text) => {
      expect(readPhoneText(text)).toBeUndefined();
    },
  );
});

describe('emailKind', () => {
  it.each([
    'a@example.com\u200B',
    '\uFEFFa@example.com',
    'a\u00AD@exam\u200Dple.com',
    '\u202Aa@example.com\u202C\r\n',
    'a\uFE0F@example.com\u3164',
  ])('removes invisible characters from %j', (input) => {
    expect(readFields(Contact, { email: input })).toEqual({ email: 'a@example.com' });
  });

  it('composes characters', () => {
    const email = 'jose\u0301@example.com';
    expect(readFields(Contact, { email })).toEqual({ email: 'josé@example.com' });
  });
});
