/** Letters that Unicode does not decompose into a letter and its marks. */
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
 * Converts a place name for comparison: without case, accents and punctuation. `München` and `MUNCHEN` are the same,
 * `Muenchen` is not. data/places.tsv.br contains keys, so a change here requires a new file.
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
