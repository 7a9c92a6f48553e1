/** @returns the width of a text in ems: of one line, at size 1 */
export type Measure = (text: string) => number;

export type Room = {
  width: number;
  height: number;
  /** The largest and the smallest size of letters. */
  most: number;
  least: number;
  mostLines: number;
  /** From one line to the next, as a multiple of the size. */
  leading: number;
};

export type Fitted = { size: number; lines: string[] };

const STEP = 0.97;
/** Widths of words are added up, without what pairs of letters across a space may add. */
const SAFETY = 0.995;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/**
 * The largest letters in which a text fits, in lines of about the same length. Words are taken apart only where they
 * would not fit in the smallest letters, and the text is cut only where even that is too long.
 */
export function fitted(text: string, room: Room, measure: Measure): Fitted {
  const words = text.split(/[ \t\r\n]+/).filter((word) => word !== '');
  const longest = Math.max(0, ...words.map(measure));
  for (let size = room.most; size >= room.least; size *= STEP) {
    if (longest * size > room.width * SAFETY) continue;
    const found = fitAt(size, words, room, measure);
    if (found) return found;
  }
  const width = (room.width * SAFETY) / room.least;
  const parts = words.flatMap((word) => pieces(word, width, measure));
  return (
    fitAt(room.least, parts, room, measure) ?? {
      size: room.least,
      lines: shortened(wrapped(parts, width, measure), linesIn(room, room.least), width, measure),
    }
  );
}

function fitAt(size: number, words: string[], room: Room, measure: Measure): Fitted | undefined {
  const width = (room.width * SAFETY) / size;
  const lines = wrapped(words, width, measure);
  if (lines.length > linesIn(room, size)) return undefined;
  return { size, lines: balanced(words, lines, width, measure) };
}

function linesIn({ height, leading, mostLines }: Room, size: number): number {
  return Math.max(1, Math.min(mostLines, Math.floor(height / (leading * size))));
}

function wrapped(words: string[], width: number, measure: Measure): string[] {
  const space = measure(' ');
  const lines: string[] = [];
  let taken = Infinity;
  for (const word of words) {
    const own = measure(word);
    if (taken + space + own > width) {
      lines.push(word);
      taken = own;
    } else {
      lines.push(`${lines.pop()} ${word}`);
      taken += space + own;
    }
  }
  return lines;
}

/** The same number of lines, in the narrowest column that takes no more. */
function balanced(words: string[], lines: string[], width: number, measure: Measure): string[] {
  let [narrow, wide] = [width / 2, width];
  let best = lines;
  for (let tries = 0; tries < 12; tries++) {
    const middle = (narrow + wide) / 2;
    const found = wrapped(words, middle, measure);
    const fits = found.length <= lines.length && words.every((word) => measure(word) <= middle);
    if (fits) [wide, best] = [middle, found];
    else narrow = middle;
  }
  return best;
}

/** A word in parts that are no wider. */
function pieces(word: string, width: number, measure: Measure): string[] {
  if (measure(word) <= width) return [word];
  const found: string[] = [];
  let taken = Infinity;
  for (const { segment } of graphemes.segment(word)) {
    const own = measure(segment);
    if (taken + own > width) {
      found.push(segment);
      taken = own;
    } else {
      found.push(`${found.pop()}${segment}`);
      taken += own;
    }
  }
  return found;
}

function shortened(lines: string[], most: number, width: number, measure: Measure): string[] {
  const kept = lines.slice(0, most);
  const last = [...graphemes.segment(kept.pop() ?? '')].map(({ segment }) => segment);
  while (last.length > 0 && measure(`${last.join('')}…`) > width) last.pop();
  return [...kept, `${last.join('').trimEnd()}…`];
}
