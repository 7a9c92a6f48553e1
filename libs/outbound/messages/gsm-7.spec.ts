import { describe, expect, it } from '@jest/globals';
import { countSeptets, measureSms, toPlainText } from './gsm-7.js';

describe('countSeptets', () => {
  it.each([
    ['Hello', 5],
    ['@£$Çé ñ', 7],
    ['{€}', 6],
    ['a~b', 4],
    ['', 0],
  ])('returns for %j %i', (text, septets) => {
    expect(countSeptets(text)).toBe(septets);
  });

  it.each(['ç', '“', 'Ж', '😀', 'ê'])('returns undefined for %s', (text) => {
    expect(countSeptets(text)).toBeUndefined();
  });
});

describe('toPlainText', () => {
  it.each([
    ['“Ça va” – l’été…', '"Ça va" - l\'été...'],
    ['Crêpe, garçon', 'Crepe, garcon'],
    ['Œuvre', 'OEuvre'],
    ['Señor Müller', 'Señor Müller'],
    ['Dvořák', 'Dvorak'],
    ['e\u0301', 'é'],
    ['Жук', 'Жук'],
    ['Ship 🚀', 'Ship 🚀'],
    ['‚Tee‘ ‹Kuchen› ´s `s', "'Tee' 'Kuchen' 's 's"],
    ['„Tee“ «Kuchen» ″ 〝〞 ‟', '"Tee" "Kuchen" " "" "'],
    ['2 × Kaffee • Kuchen ÷ 2', '2 x Kaffee - Kuchen / 2'],
    [
      '9\u201318\u2009Uhr, E\u2011Mail \u2010 \u2012 \u2014 \u2015 \u2212',
      '9-18 Uhr, E-Mail - - - - -',
    ],
    ['a\u2002b\u2003c\u3000d\u00a0e\u202ff\tg', 'a b c d e f g'],
    ['½ Preis, 1½ l, ¾, ⅓', '1/2 Preis, 1 1/2 l, 3/4, 1/3'],
    ['ﬁn, oﬀen, ﬆ, Ĳssel', 'fin, offen, st, IJssel'],
    ['Łódź, Đakovo, Ağrı', 'Lodz, Dakovo, Agri'],
    ['Su\u00adper\u200bmarkt\ufeff \u2060\u200eok\u202c', 'Supermarkt ok'],
    ['Caf\u0065\u0301, n\u0303, x\u030c', 'Café, ñ, x'],
    ['ＡＢＣ！ 𝐁𝐨𝐥𝐝 №5 ™', 'ABC! Bold No5 TM'],
    ['m², Größe ①', 'm2, Größe 1'],
    ['10² cm', '10² cm'],
    ['one\u2028two', 'one\ntwo'],
    ['हिन्दी', 'हिन्दी'],
    ['ไทย ที่นี่', 'ไทย ที่นี่'],
    ['می\u200cخواهم', 'می\u200cخواهم'],
    ['👩\u200d🍳 ❤\ufe0f', '👩\u200d🍳 ❤\ufe0f'],
    ['й ё', 'й ё'],
    ['', ''],
  ])('turns %j into %j', (text, plain) => {
    expect(toPlainText(text)).toBe(plain);
  });

  it('turns every dash, space and quotation mark into GSM-7', () => {
    const marks = [];
    for (let point = 0x80; point < 0x2e00; point++) {
      const mark = String.fromCodePoint(point);
      if (/[\p{Pd}\p{Zs}\p{Pi}\p{Pf}]/u.test(mark)) marks.push(mark);
    }
    expect(marks.length).toBeGreaterThan(30);
    expect(marks.filter((mark) => countSeptets(toPlainText(`a${mark}b`)) === undefined)).toEqual(
      [],
    );
  });
});

describe('the size of an SMS', () => {
  it.each([
    ['', { alphabet: 'gsm7', parts: 1, used: 0, left: 160 }],
    ['a'.repeat(160), { alphabet: 'gsm7', parts: 1, used: 160, left: 0 }],
    ['a'.repeat(161), { alphabet: 'gsm7', parts: 2, used: 8, left: 145 }],
    ['€'.repeat(80), { alphabet: 'gsm7', parts: 1, used: 160, left: 0 }],
    [`${'a'.repeat(152)}€${'b'.repeat(20)}`, { alphabet: 'gsm7', parts: 2, used: 22, left: 131 }],
    ['я'.repeat(70), { alphabet: 'ucs2', parts: 1, used: 70, left: 0 }],
    ['я'.repeat(71), { alphabet: 'ucs2', parts: 2, used: 4, left: 63 }],
    [`${'я'.repeat(66)}🎉${'я'.repeat(4)}`, { alphabet: 'ucs2', parts: 2, used: 6, left: 61 }],
  ])('of %j is %j', (text, size) => {
    expect(measureSms(text)).toEqual(size);
  });
});
