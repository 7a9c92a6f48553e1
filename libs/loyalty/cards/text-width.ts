/**
 * The widths of ASCII characters from the space on, in hundredths of the font size: those of Inter Medium, which is a
 * little wider than SF Pro, the font of phones. So what fits by them fits there.
 */
const ASCII =
  '27 31 50 64 65 100 66 32 37 37 53 67 31 47 31 37 65 42 62 63 66 61 63 58 63 63 31 32 67 67 67 53 99 71 66 74 73 61 59 75 75 28 58 69 57 92 76 77 65 77 65 65 66 75 71 101 71 70 65 37 37 37 48 47 34 57 62 58 62 59 38 62 61 26 26 56 26 89 61 61 62 62 39 54 35 61 58 83 56 58 56 45 35 45 67'
    .split(' ')
    .map((width) => Number(width) / 100);
const FIRST_ASCII = 0x20;

/** The others, by kind: each as wide as the widest that is usual. */
const KINDS: [RegExp, number][] = [
  [/[\p{Mn}\p{Me}\p{Cf}\ufe0f]/u, 0],
  [/[’‘·ıł\u00a0\u202f]/u, 0.31],
  [/[–“”°«»]/u, 0.56],
  [/[—…œŒæÆ\u2122]/u, 1.02],
  [/\p{Extended_Pictographic}/u, 1.3],
  [/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u, 1.02],
  [/[\p{Script=Arabic}\p{Script=Hebrew}]/u, 0.62],
  [/[жмшщюыЖМШЩЮЫωψ]/u, 1],
  [/\p{Lu}/u, 0.8],
  [/\p{Ll}/u, 0.66],
];
const OTHER = 0.9;

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** No phone has room for a line of more. */
const MAX_LENGTH = 128;
const ONLY_ASCII = /^[\x20-\x7e]*$/;

/** Estimates the width of one line; endless for a long one. @param size of the font in points */
export function measureText(text: string, size: number): number {
  if (text.length > MAX_LENGTH) return Infinity;
  let ems = 0;
  if (ONLY_ASCII.test(text)) {
    for (let i = 0; i < text.length; i++) ems += ASCII[text.charCodeAt(i) - FIRST_ASCII] ?? 0;
    return ems * size;
  }
  for (const { segment } of SEGMENTER.segment(text)) ems += measureCharacter(segment);
  return ems * size;
}

/**
 * Shortens a text to a width: at the end of a word where one is near, with an ellipsis.
 * @param toShown converts a character to how it is shown, such as to its capital
 */
export function shortenText(
  text: string,
  width: number,
  size: number,
  toShown = (character: string) => character,
): string {
  if (measureText(toShown(text), size) <= width) return text;
  let usedWidth = measureText('…', size);
  let cut = '';
  for (const { segment } of SEGMENTER.segment(text)) {
    usedWidth += measureText(toShown(segment), size);
    if (usedWidth > width && cut !== '') break;
    cut += segment;
  }
  const lastSpace = cut.lastIndexOf(' ');
  const isWordNear = lastSpace >= cut.length / 2;
  return `${(isWordNear ? cut.slice(0, lastSpace) : cut).replace(/[\s,.:;–—-]+$/u, '')}…`;
}

/** Measures what a reader sees as one character, such as a letter with its accent, or an emoji of several parts. */
function measureCharacter(character: string): number {
  const [first = '', ...others] = character.normalize('NFD');
  const ascii = ASCII[(first.codePointAt(0) ?? 0) - FIRST_ASCII];
  const ems = ascii ?? KINDS.find(([kind]) => kind.test(first))?.[1] ?? OTHER;
  // Scripts such as Devanagari join letters to one character.
  const joinedCount = others.filter((part) => /\p{L}/u.test(part)).length;
  return ems + joinedCount * OTHER;
}
