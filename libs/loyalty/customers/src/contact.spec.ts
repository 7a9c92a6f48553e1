import { describe, expect, it } from '@jest/globals';
import { isShortenedNumber, normalPhone, readEmail, readPhone, readPhoneText } from './contact.js';

const valueOf = (checked: ReturnType<typeof readPhone>) =>
  'value' in checked ? checked.value : checked.faults;

describe('readPhone', () => {
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
  ])('reads %j, %s', (given) => {
    expect(valueOf(readPhone(given))).toBe('+491711234567');
  });

  it.each([
    ['٠٥٠ ١٢٣', '050123'],
    ['050 ١٢٣', '050123'],
    ['０３－１２３４－５６７８', '0312345678'],
    ['\u200F050 123\u200F', '050123'],
    ['(0151) 18-18.18', '0151181818'],
  ])('reads %j, without a country, as %s', (given, digits) => {
    expect(valueOf(readPhone(given))).toBe(digits);
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
  ])('refuses %j, which it could only read by leaving something out', (given) => {
    expect(valueOf(readPhone(given))).toEqual(['must be a phone number']);
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
  ])('says that %j has lost digits', (given) => {
    expect(isShortenedNumber(given)).toBe(true);
    expect(valueOf(readPhone(given))).toEqual(['looks like a spreadsheet has shortened it']);
  });

  it('finds a text without anything visible blank', () => {
    expect(valueOf(readPhone('\u200E \u3164'))).toEqual(['must not be blank']);
  });

  it('reads what it has returned', () => {
    for (const phone of ['+491711234567', '050123']) expect(normalPhone(phone)).toBe(phone);
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

describe('readEmail', () => {
  it.each([
    'a@example.com\u200B',
    '\uFEFFa@example.com',
    'a\u00AD@exam\u200Dple.com',
    '\u202Aa@example.com\u202C\r\n',
    'a\uFE0F@example.com\u3164',
  ])('reads %j as the address that is seen', (given) => {
    expect(readEmail(given)).toEqual({ value: 'a@example.com' });
  });

  it('composes', () => {
    expect(readEmail('jose\u0301@example.com')).toEqual({ value: 'josé@example.com' });
  });
});
