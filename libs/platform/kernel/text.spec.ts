import { describe, expect, it } from '@jest/globals';
import {
  hasHiddenCharacter,
  isBlankText,
  normalizeIdentifier,
  normalizeNumber,
  normalizePassword,
  normalizeText,
} from './text.js';

/** Characters that render as nothing. */
const INVISIBLE = [
  '\u00AD \u034F \u061C \u115F \u1160 \u17B4 \u180B \u180E \u200B \u200C \u200D \u200E \u200F',
  '\u202A \u202C \u202E \u2060 \u2064 \u2066 \u2069 \u206F \u2800 \u3164 \uFE0F \uFEFF \uFFA0',
  '\uFFF9 \u{1D159} \u{1D173} \u{13441} \u{16FE4} \u{E0001} \u{E0020} \u{E0100}',
].flatMap((line) => line.split(' '));
const SPACES = [' ', '\t', '\r', '\n', '\u0085', '\u00A0', '\u2003', '\u2028', '\u3000', '\u0001'];

describe('normalizeText', () => {
  it.each([...INVISIBLE, ...SPACES])('removes %j at the beginning', (character) => {
    expect(normalizeText(`${character}Anna`)).toBe('Anna');
    expect(normalizeText(` ${character} ${character}Anna`)).toBe('Anna');
  });

  it.each(
    [...INVISIBLE, ...SPACES].filter((character) => !/\p{Variation_Selector}/u.test(character)),
  )('removes %j at the end', (character) => {
    expect(normalizeText(`Anna${character}`)).toBe('Anna');
    expect(normalizeText(`Anna ${character}${character} `)).toBe('Anna');
  });

  it.each([...INVISIBLE, ...SPACES])('treats a text of only %j as blank', (character) => {
    expect(normalizeText(character.repeat(3))).toBe('');
    expect(isBlankText(`${character} ${character}`)).toBe(true);
  });

  it.each([
    ['an emoji of several people', '👨‍👩‍👧'],
    ['a red heart', 'Love ❤\uFE0F'],
    ['the flag of Scotland', '🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}'],
    ['a keycap', '1\uFE0F\u20E3'],
    ['a variant of a Chinese character', '葛\u{E0100}'],
    ['a Persian word', 'نیم\u200Cفاصله'],
    ['a Malayalam name', 'മോഹന്\u200D'],
    ['marks of direction in a name', 'Café \u200Fשלום\u200E Bar'],
    ['a soft hyphen', 'Donau\u00ADdampf'],
    ['white space inside', 'Anna\u00A0Maria  Berg'],
  ])('keeps %s', (_, text) => {
    expect(normalizeText(`\u200B ${text} \u200B`)).toBe(text.normalize('NFC'));
  });

  it('composes characters', () => {
    expect(normalizeText('Cafe\u0301')).toBe('Café');
    expect(normalizeText('\u1112\u1161\u11AB')).toBe('한');
    expect(normalizeText('\u212B')).toBe('Å');
  });

  it('does not change its own result', () => {
    for (const character of [...INVISIBLE, ...SPACES, '🏴\u{E0067}\u{E007F}', 'e\u0301\uFE0F']) {
      const text = normalizeText(`${character}a${character}e${character}\u0301${character}`);
      expect(normalizeText(text)).toBe(text);
    }
  });

  it('keeps NUL characters and lone surrogates', () => {
    expect(normalizeText(' \0 ')).toBe('\0');
    expect(normalizeText(' \uD800 ')).toBe('\uD800');
    expect(isBlankText('\0')).toBe(false);
  });

  it.each([
    ['spaces', ' '.repeat(200_000)],
    ['invisible characters', '\u200B'.repeat(200_000)],
    ['marks out of order', '\u0315\u0316'.repeat(100_000)],
  ])('normalizes 200,000 %s in under two seconds of a processor', (_, many) => {
    const start = process.cpuUsage();
    normalizeText(`${many}a${many}a${many}`);
    normalizeNumber(`${many}a${many}a${many}`);
    normalizePassword(`${many}a${many}a${many}`);
    expect(Math.max(...Object.values(process.cpuUsage(start)))).toBeLessThan(2_000_000);
  });
});

describe('normalizeIdentifier', () => {
  it.each(INVISIBLE)('removes %j anywhere', (character) => {
    expect(normalizeIdentifier(`${character}R-${character}1 e${character}\u0301${character}`)).toBe(
      'R-1 é',
    );
  });

  it('keeps digits as they are', () => {
    expect(normalizeIdentifier(' R-١٢\r\n')).toBe('R-١٢');
  });
});

describe('normalizeNumber', () => {
  it.each([
    ['Arabic', '٠١٢٣٤٥٦٧٨٩'],
    ['Persian', '۰۱۲۳۴۵۶۷۸۹'],
    ['Devanagari', '०१२३४५६७८९'],
    ['Bengali', '০১২৩৪৫৬৭৮৯'],
    ['Thai', '๐๑๒๓๔๕๖๗๘๙'],
    ['wide', '０１２３４５６７８９'],
    ['Chakma (beyond 16 bits)', '𑄶𑄷𑄸𑄹𑄺𑄻𑄼𑄽𑄾𑄿'],
    ['bold', '𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗'],
    ['monospaced (after four other tens)', '𝟶𝟷𝟸𝟹𝟺𝟻𝟼𝟽𝟾𝟿'],
  ])('converts %s digits to ASCII', (_, digits) => {
    expect(normalizeNumber(digits)).toBe('0123456789');
  });

  it('converts wide plus signs to ASCII', () => {
    expect(normalizeNumber('\u202A＋８１ 90\u202C')).toBe('+81 90');
    expect(normalizeNumber('﹢49')).toBe('+49');
  });

  it('keeps characters that are not decimal digits', () => {
    expect(normalizeNumber('½ ② ² 五 Ⅳ')).toBe('½ ② ² 五 Ⅳ');
  });
});

describe('normalizePassword', () => {
  // The examples of RFC 8265, section 4.3, and others.
  it.each([
    ['correct horse battery staple', 'correct horse battery staple'],
    ['Correct Horse Battery Staple', 'Correct Horse Battery Staple'],
    ['πßå', 'πßå'],
    ['Jack of ♦s', 'Jack of ♦s'],
    ['foo\u1680bar', 'foo bar'],
    ['foo\u00A0\u3000bar', 'foo  bar'],
    ['  padded  ', '  padded  '],
    ['Cafe\u0301', 'Café'],
    ['ｗｉｄｅ１', 'ｗｉｄｅ１'],
    ['٣', '٣'],
    ['ﬁ', 'ﬁ'],
    ['', ''],
  ])('normalizes %j to %j', (password, normal) => {
    expect(normalizePassword(password)).toBe(normal);
  });
});

describe('hasHiddenCharacter', () => {
  it.each(['my cat is a \tby', 'a\u200Bb', 'a\u3164b', 'a\u007Fb', '\uFEFFab'])(
    'finds one in %j',
    (text) => {
      expect(hasHiddenCharacter(text)).toBe(true);
    },
  );

  it.each(['correct horse', '👨‍👩‍👧 ❤\uFE0F', 'نیم\u200Cفاصله'])('finds none in %j', (text) => {
    expect(hasHiddenCharacter(text)).toBe(false);
  });
});
