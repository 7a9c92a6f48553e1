import { describe, expect, it } from '@jest/globals';
import type { Config } from '#configuration/config.js';
import { NotoFonts } from './noto-fonts.service.js';
import { PosterFonts } from './poster-fonts.service.js';

const fonts = new PosterFonts({ posterFonts: null } as Config, new NotoFonts());
const AT = { x: 0, y: 0, size: 100 };

const SCRIPTS = [
  ['Arabic', 'بطاقة ولاء القهوة'],
  ['Hebrew', 'קפה חינם (10)'],
  ['Persian', 'قهوهٔ رایگان ۱۰'],
  ['Urdu', 'مفت کافی'],
  ['simplified Chinese', '咖啡积分卡，满十送一'],
  ['traditional Chinese', '臺灣咖啡集點卡'],
  ['Cantonese', '飲嘢嘅地方'],
  ['Japanese', '喫茶 モリ 第10杯無料ー〜'],
  ['Korean', '커피 무료 쿠폰'],
  ['Thai', 'กาแฟฟรีที่นี่'],
  ['Lao', 'ກາເຟຟຣີ'],
  ['Khmer', 'កាហ្វេឥតគិតថ្លៃ'],
  ['Burmese', 'ကော်ဖီအခမဲ့'],
  ['Hindi', 'निःशुल्क कॉफ़ी क्षत्रिय'],
  ['Marathi', 'मोफत कॉफी'],
  ['Bengali', 'বিনামূল্যে কফি'],
  ['Punjabi', 'ਮੁਫ਼ਤ ਕੌਫੀ'],
  ['Gujarati', 'નિઃશુલ્ક કૉફી'],
  ['Odia', 'ମାଗଣା କଫି'],
  ['Tamil', 'இலவச காபி'],
  ['Telugu', 'ఉచిత కాఫీ'],
  ['Kannada', 'ಉಚಿತ ಕಾಫಿ'],
  ['Malayalam', 'ഫ്രീ കോഫി'],
  ['Sinhala', 'නොමිලේ කෝපි'],
  ['Georgian', 'უფასო ყავა'],
  ['Armenian', 'Անվճար սուրճ'],
  ['Amharic', 'ነጻ ቡና'],
  ['Dhivehi', 'ހިލޭ ކޮފީ'],
  ['Greek', 'Δωρεάν καφές'],
  ['Russian', 'Бесплатный кофе'],
  ['Vietnamese', 'Cà phê miễn phí'],
  ['emoji', '10 ☕ = 1 ☕ ❤️ 👩‍🍳 👍🏽 🇮🇹 3️⃣ 🏳️‍🌈'],
  ['signs', '★ ✓ → ☎ ½ № ① ♥ © ™ ₪ ₹ ₩ ₽ €'],
  ['mixed scripts', 'Café 喫茶 Mori – مقهى 10% 第10杯 free'],
] as const;

describe('listIllegible', () => {
  it.each(SCRIPTS)('finds nothing that cannot be drawn in %s', (_, text) => {
    expect(fonts.listIllegible(text)).toEqual([]);
  });

  it.each([
    ['𝓒𝓪𝓯é 𝟙𝟘 ㎏', [], 'Café 10 ㎏'],
    ['ᏣᎳᎩ Café ᏣᎳ', ['Ꮳ', 'Ꮃ', 'Ꭹ'], 'Café'],
    ['ⴰⵣⵓⵍ', ['ⴰ', 'ⵣ', 'ⵓ', 'ⵍ'], ''],
    ['Pay \uf8ff here', ['\uf8ff'], 'Pay here'],
  ])('tells what is left out of %s', async (text, illegible, legible) => {
    expect(fonts.listIllegible(text)).toEqual(illegible);
    const letters = await fonts.loadLetters([text]);
    expect(letters.removeIllegible(text, 'bold')).toBe(legible);
    expect(letters.removeIllegible(text, 'regular')).toBe(legible);
  });
});

describe('Letters', () => {
  it.each(SCRIPTS)('draw all of a text in %s', async (_, text) => {
    const letters = await fonts.loadLetters([text]);
    for (const weight of ['regular', 'bold'] as const) {
      const legible = letters.removeIllegible(text, weight);
      expect(legible).toBe(text.normalize('NFC'));
      const runs = letters.runs(legible, weight);
      // Glyph 0 is what a font draws in place of a character that it lacks.
      for (const { face, text: part } of runs) {
        const missing = [...part].filter(
          (character) =>
            !/\p{Default_Ignorable_Code_Point}/u.test(character) &&
            !face.font.characters.has(character.codePointAt(0) ?? 0),
        );
        expect(missing).toEqual([]);
      }
      expect(letters.width(legible, weight)).toBeGreaterThan(1);
      expect(letters.outline(legible, weight, AT)).toMatch(/^M[-\d. A-Z]+Z$/);
    }
  });

  it('draw Han letters as in the country of the letters beside them', async () => {
    const outline = async (texts: string[]) =>
      (await fonts.loadLetters(texts)).outline('直', 'bold', AT);
    const china = await outline(['直']);
    expect(await outline(['直', 'コーヒー'])).not.toBe(china);
    expect(await outline(['直', '咖啡'])).toBe(china);
  });

  it('join Arabic letters', async () => {
    const letters = await fonts.loadLetters(['ببب']);
    const width = letters.width('ببب', 'bold');
    expect(width).toBeLessThan(3 * letters.width('ب', 'bold'));
  });

  it('draw words that are read from the right in their order, with brackets turned', async () => {
    const letters = await fonts.loadLetters(['א (ב)']);
    const runs = letters.runs('א (ב)', 'bold').map(({ text, face }) => [text, face.name]);
    const drawn = runs.map(([text]) => text).join('');
    expect(drawn.indexOf('ב')).toBeLessThan(drawn.indexOf('א'));
  });

  it('are bolder where they are bold', async () => {
    for (const text of ['咖', 'ب', 'ก', '☕']) {
      const letters = await fonts.loadLetters([text]);
      expect(letters.outline(text, 'bold', AT)).not.toBe(letters.outline(text, 'regular', AT));
    }
  });
});
