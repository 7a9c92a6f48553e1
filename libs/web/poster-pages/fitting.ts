/** Measures the width of a line in ems. */
export type Measure = (text: string) => number;

export type Room = {
  width: number;
  height: number;
  /** The largest font size. */
  maxSize: number;
  minSize: number;
  maxLines: number;
  /** The line height, as a multiple of the font size. */
  leading: number;
};

export type FittedText = { size: number; lines: string[] };

const STEP = 0.97;
/** The widths of words are added up without the kerning across a space. */
const SAFETY = 0.995;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Letters of scripts that put no spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
/** No line begins with what ends or continues a word, nor ends with what opens one. */
const NO_BREAK_BEFORE =
  /^[\p{Pe}\p{Pf}\p{M}\u30FB-\u30FE\u3005\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308E\u30A1\u30A3\u30A5\u30A7\u30A9\u30C3\u30E3\u30E5\u30E7\u30EE.,:;!?%\u2026\u3001\u3002\uFF01\uFF0C\uFF0E\uFF1A\uFF1B\uFF1F\uFF05\u0E2F\u0E46]/u;
const NO_BREAK_AFTER = /[\p{Ps}\p{Pi}\u00A3\u00A5\uFFE5$\u20AC]$/u;
const wordsOf = new Intl.Segmenter(undefined, { granularity: 'word' });

/** A part of a text between which a line may end. @property space what stands before it on the same line */
type Word = { text: string; space: '' | ' ' };

/**
 * Fits a text into a box in the largest possible font size, in lines of similar length. It splits words only if they do
 * not fit in the smallest size, and cuts the text only if even that is too long.
 */
export function fitText(text: string, room: Room, measure: Measure): FittedText {
  const words = splitWords(text);
  const longest = Math.max(0, ...words.map((word) => measure(word.text)));
  for (let size = room.maxSize; size >= room.minSize; size *= STEP) {
    if (longest * size > room.width * SAFETY) continue;
    const fit = fitAt(size, words, room, measure);
    if (fit) return fit;
  }
  const width = (room.width * SAFETY) / room.minSize;
  const parts = words.flatMap((word) => splitWord(word, width, measure));
  return (
    fitAt(room.minSize, parts, room, measure) ?? {
      size: room.minSize,
      lines: shortenLines(
        wrapWords(parts, width, measure),
        countLines(room, room.minSize),
        width,
        measure,
      ),
    }
  );
}

/** Splits a text where lines may end: at spaces, and between the words of scripts that have no spaces. */
function splitWords(text: string): Word[] {
  return text
    .split(/[ \t\r\n]+/)
    .filter((word) => word !== '')
    .flatMap((word) =>
      (UNSPACED.test(word) ? splitUnspaced(word) : [word]).map((part, index): Word => ({
        text: part,
        space: index === 0 ? ' ' : '',
      })),
    );
}

function splitUnspaced(text: string): string[] {
  const parts: string[] = [];
  for (const { segment } of wordsOf.segment(text)) {
    const last = parts.at(-1);
    const canBreak =
      last !== undefined &&
      (UNSPACED.test(last) || UNSPACED.test(segment)) &&
      !NO_BREAK_BEFORE.test(segment) &&
      !NO_BREAK_AFTER.test(last);
    if (last === undefined || canBreak) parts.push(segment);
    else parts[parts.length - 1] = `${last}${segment}`;
  }
  return parts;
}

function fitAt(size: number, words: Word[], room: Room, measure: Measure): FittedText | undefined {
  const width = (room.width * SAFETY) / size;
  const lines = wrapWords(words, width, measure);
  if (lines.length > countLines(room, size)) return undefined;
  return { size, lines: balanceLines(words, lines, width, measure) };
}

function countLines({ height, leading, maxLines }: Room, size: number): number {
  return Math.max(1, Math.min(maxLines, Math.floor(height / (leading * size))));
}

function wrapWords(words: Word[], width: number, measure: Measure): string[] {
  const lines: string[] = [];
  let usedWidth = Infinity;
  for (const { text, space } of words) {
    const own = measure(text);
    const gap = space === '' ? 0 : measure(space);
    if (usedWidth + gap + own > width) {
      lines.push(text);
      usedWidth = own;
    } else {
      lines.push(`${lines.pop()}${space}${text}`);
      usedWidth += gap + own;
    }
  }
  return lines;
}

/** Balances the lines: finds the narrowest column that needs the same number of lines. */
function balanceLines(words: Word[], lines: string[], width: number, measure: Measure): string[] {
  let [narrow, wide] = [width / 2, width];
  let best = lines;
  for (let tries = 0; tries < 12; tries++) {
    const middle = (narrow + wide) / 2;
    const candidate = wrapWords(words, middle, measure);
    const fits =
      candidate.length <= lines.length && words.every(({ text }) => measure(text) <= middle);
    if (fits) [wide, best] = [middle, candidate];
    else narrow = middle;
  }
  return best;
}

/** Splits a word into parts of at most this width, each of which begins a line of its own. */
function splitWord(word: Word, width: number, measure: Measure): Word[] {
  if (measure(word.text) <= width) return [word];
  const parts: string[] = [];
  let usedWidth = Infinity;
  for (const { segment } of graphemes.segment(word.text)) {
    const own = measure(segment);
    if (usedWidth + own > width) {
      parts.push(segment);
      usedWidth = own;
    } else {
      parts.push(`${parts.pop()}${segment}`);
      usedWidth += own;
    }
  }
  return parts.map((text) => ({ ...word, text }));
}

function shortenLines(
  lines: string[],
  maxLines: number,
  width: number,
  measure: Measure,
): string[] {
  const visibleLines = lines.slice(0, maxLines);
  const last = [...graphemes.segment(visibleLines.pop() ?? '')].map(({ segment }) => segment);
  while (last.length > 0 && measure(`${last.join('')}…`) > width) last.pop();
  return [...visibleLines, `${last.join('').trimEnd()}…`];
}
