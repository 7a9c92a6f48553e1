import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { NotoFonts } from '#loyalty/posters/noto-fonts.service.js';

const UNUSUAL = /[\p{Cn}\p{Cs}\p{Co}\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** Lists the characters that the packages name, file by file, so that each file is loaded once. */
function listCharacters(): Set<string> {
  const characters = new Set<string>();
  const lists = ['@fontsource', '@fontsource-variable'].flatMap((scope) =>
    readdirSync(`node_modules/${scope}`).map(
      (name) => `node_modules/${scope}/${name}/unicode.json`,
    ),
  );
  // The first that is asked for Han letters.
  lists.sort((a, b) => Number(b.includes('sans-sc')) - Number(a.includes('sans-sc')));
  for (const list of lists) {
    const parts = JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>;
    for (const range of Object.values(parts).flatMap((ranges) => ranges.split(','))) {
      const [from = NaN, to = from] = range
        .replace(/U\+/gi, '')
        .split('-')
        .map((limit) => Number.parseInt(limit, 16));
      for (let code = from; code <= to; code++) characters.add(String.fromCodePoint(code));
    }
  }
  return characters;
}

describe('the Noto fonts', () => {
  it('have every character that they are said to have', async () => {
    const fonts = new NotoFonts();
    const missing: string[] = [];
    let count = 0;
    for (const character of listCharacters()) {
      if (UNUSUAL.test(character) || !fonts.has(character)) continue;
      count++;
      if (!(await fonts.load(character, 'china'))) missing.push(character);
    }
    expect(missing).toEqual([]);
    expect(count).toBeGreaterThan(37_000);
  });
});
