import { describe, expect, it } from '@jest/globals';
import { findContent } from './picture-margin.js';

type Color = readonly [number, number, number, number];
const COLORS: Record<string, Color> = {
  '.': [0, 0, 0, 0],
  w: [255, 255, 255, 255],
  o: [248, 247, 250, 255],
  c: [240, 234, 220, 255],
  g: [0, 140, 69, 255],
  r: [205, 33, 42, 255],
  k: [0, 0, 0, 255],
  y: [255, 210, 0, 255],
  s: [0, 0, 0, 20],
};

/** Finds the content of a picture of one letter for each pixel, as the lines that stay. */
function cut(...lines: string[]): string[] {
  const width = lines[0]?.length ?? 0;
  const data = Uint8Array.from(
    lines.flatMap((line) => [...line].flatMap((letter) => COLORS[letter] ?? [])),
  );
  const area = findContent({ data, width, height: lines.length });
  return lines
    .slice(area.top, area.top + area.height)
    .map((line) => line.slice(area.left, area.left + area.width));
}

describe('findContent', () => {
  it.each<[string, string[]]>([
    ['an upright flag', ['ggwwrr', 'ggwwrr', 'ggwwrr']],
    ['a level flag', ['ggg', 'www', 'rrr']],
    ['a flag with black', ['kkyyrr', 'kkyyrr', 'kkyyrr']],
    ['two halves', ['ggrr', 'ggrr']],
    ['two level halves', ['kk', 'yy']],
    ['a badge with a frame', ['ggggg', 'gwwwg', 'gwrwg', 'gwwwg', 'ggggg']],
    ['a banner with a dark block', ['kkyyyyyy', 'kkyyyyyy']],
    ['an avatar with a coloured margin', ['ggggg', 'ggygg', 'gyyyg', 'ggygg', 'ggggg']],
    ['a cream margin', ['ccc', 'crc', 'ccc']],
    ['a black margin', ['kkk', 'kyk', 'kkk']],
    ['white alone', ['www', 'www']],
    ['nothing but transparency', ['...', '...']],
    ['one pixel', ['w']],
    ['a flag with a white half', ['www', 'rrr']],
    ['a flag with an upright white half', ['wwrr', 'wwrr']],
    ['a flag with a white upper third', ['www', 'ggg', 'rrr']],
    ['a flag with white outer thirds', ['wwrrww', 'wwrrww']],
    ['a white plate among transparent corners', ['.www', 'wwrw', 'www.']],
  ])('keeps the whole of %s', (_, lines) => {
    expect(cut(...lines)).toEqual(lines);
  });

  it.each<[string, string[], string[]]>([
    ['white', ['wwww', 'wrgw', 'wwww'], ['rg']],
    ['off-white, as of a JPEG', ['owow', 'wrgo', 'owwo'], ['rg']],
    ['transparent', ['....', '.rg.', '....'], ['rg']],
    ['transparent margin around white', ['.....', '.www.', '.wrw.', '.....'], ['www', 'wrw']],
    ['transparent margin around white letters', ['....', '.ww.', '....'], ['ww']],
    ['transparent on one side', ['..gr', '..gr'], ['gr', 'gr']],
    ['white, but not its third of a flag with a margin', ['wwwww', 'wgwrw', 'wwwww'], ['gwr']],
    ['transparent, but not black bars', ['......', '.kwwk.', '......'], ['kwwk']],
    ['transparent, but not a soft shadow', ['.....', '.srs.', '.....'], ['srs']],
  ])('cuts off what is %s', (_, lines, content) => {
    expect(cut(...lines)).toEqual(content);
  });
});
