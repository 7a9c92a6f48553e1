/** What does not fall apart into a letter and its marks. */
const LETTERS: Record<string, string> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ħ: 'h',
  ı: 'i',
};

/**
 * How names of places are compared: without case, accents and punctuation. `München` and `MUNCHEN` are the same,
 * `Muenchen` is not. Keys stand in data/places.tsv.br: whoever changes this makes that file anew.
 */
export function toPlaceKey(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[ßæœøđðþłħı]/g, (letter) => LETTERS[letter] ?? letter)
    .replaceAll(/['’‘ʼ`]/g, '')
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}
