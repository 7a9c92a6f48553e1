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

/**
 * Fits a text into a box in the largest possible font size, in lines of similar length. It splits words only if they do
 * not fit in the smallest size, and cuts the text only if even that is too long.
 */
export function fitText(text: string, room: Room, measure: Measure): FittedText {
  const words = text.split(/[ \t\r\n]+/).filter((word) => word !== '');
  const longest = Math.max(0, ...words.map(measure));
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

function fitAt(
  size: number,
  words: string[],
  room: Room,
  measure: Measure,
): FittedText | undefined {
  const width = (room.width * SAFETY) / size;
  const lines = wrapWords(words, width, measure);
  if (lines.length > countLines(room, size)) return undefined;
  return { size, lines: balanceLines(words, lines, width, measure) };
}

function countLines({ height, leading, maxLines }: Room, size: number): number {
  return Math.max(1, Math.min(maxLines, Math.floor(height / (leading * size))));
}

function wrapWords(words: string[], width: number, measure: Measure): string[] {
  const space = measure(' ');
  const lines: string[] = [];
  let usedWidth = Infinity;
  for (const word of words) {
    const own = measure(word);
    if (usedWidth + space + own > width) {
      lines.push(word);
      usedWidth = own;
    } else {
      lines.push(`${lines.pop()} ${word}`);
      usedWidth += space + own;
    }
  }
  return lines;
}

/** Balances the lines: finds the narrowest column that needs the same number of lines. */
function balanceLines(words: string[], lines: string[], width: number, measure: Measure): string[] {
  let [narrow, wide] = [width / 2, width];
  let best = lines;
  for (let tries = 0; tries < 12; tries++) {
    const middle = (narrow + wide) / 2;
    const candidate = wrapWords(words, middle, measure);
    const fits = candidate.length <= lines.length && words.every((word) => measure(word) <= middle);
    if (fits) [wide, best] = [middle, candidate];
    else narrow = middle;
  }
  return best;
}

/** Splits a word into parts of at most this width. */
function splitWord(word: string, width: number, measure: Measure): string[] {
  if (measure(word) <= width) return [word];
  const parts: string[] = [];
  let usedWidth = Infinity;
  for (const { segment } of graphemes.segment(word)) {
    const own = measure(segment);
    if (usedWidth + own > width) {
      parts.push(segment);
      usedWidth = own;
    } else {
      parts.push(`${parts.pop()}${segment}`);
      usedWidth += own;
    }
  }
  return parts;
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
