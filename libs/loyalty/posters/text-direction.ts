import createBidi from 'bidi-js';

/** A part of a line that is read in one direction. */
export type DirectedText = { text: string; isRightToLeft: boolean };

// The package exports the function itself, although its types say otherwise.
const bidi = (createBidi as unknown as typeof createBidi.default)();
/** Characters that may be read from the right, and marks that may change the direction. */
const DIRECTED =
  /[\u0590-\u08FF\u200E\u200F\u202A-\u202E\u2066-\u2069\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;
/** Marks that decide about direction, and are not drawn. */
const MARKS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;
const LEFT_TO_RIGHT_MARK = '\u200E';
const RIGHT_TO_LEFT_MARK = '\u200F';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Lets a line be read from the left, even if it begins with a name that is read from the right. */
export function markLeftToRight(line: string): string {
  return DIRECTED.test(line) ? `${LEFT_TO_RIGHT_MARK}${line}` : line;
}

/** Gives each line of a text the direction of the whole text: one may begin with a name in other letters. */
export function markLines(text: string, lines: string[]): string[] {
  if (!DIRECTED.test(text)) return lines;
  const mark = findBaseLevel(text) === 1 ? RIGHT_TO_LEFT_MARK : LEFT_TO_RIGHT_MARK;
  return lines.map((line) => `${mark}${line}`);
}

/** Removes the marks that decide about direction. */
export function removeMarks(text: string): string {
  return text.replace(MARKS, '');
}

/**
 * Splits a line into parts in the order in which they stand, from the left, by the Unicode Bidirectional Algorithm
 * (UAX #9). A line has the direction of its first letter or mark. Each part keeps the order in which it is read.
 */
export function splitByDirection(line: string): DirectedText[] {
  if (!DIRECTED.test(line)) return [{ text: line, isRightToLeft: false }];
  const { levels } = bidi.getEmbeddingLevels(line, 'auto');
  const runs: { level: number; text: string }[] = [];
  for (const { segment, index } of graphemes.segment(line)) {
    const level = levels[index] ?? 0;
    const last = runs.at(-1);
    if (last !== undefined && last.level === level) last.text += segment;
    else runs.push({ level, text: segment });
  }
  return reorder(runs)
    .map(({ level, text }) => ({ text: removeMarks(text), isRightToLeft: level % 2 === 1 }))
    .filter(({ text }) => text !== '');
}

/** Turns a text that is read from the right into one that is drawn from the left, with its brackets mirrored. */
export function mirrorText(text: string): string {
  return [...graphemes.segment(text)]
    .map(({ segment }) => bidi.getMirroredCharacter(segment) ?? segment)
    .toReversed()
    .join('');
}

function findBaseLevel(text: string): number {
  return bidi.getEmbeddingLevels(text, 'auto').paragraphs[0]?.level ?? 0;
}

/** Brings runs into the order in which they are drawn (UAX #9, rule L2). */
function reorder<T extends { level: number }>(runs: T[]): T[] {
  const ordered = [...runs];
  for (let level = Math.max(...runs.map((run) => run.level)); level > 0; level--) {
    let start = 0;
    while (start < ordered.length) {
      let end = start;
      while ((ordered[end]?.level ?? -1) >= level) end++;
      if (end > start)
        ordered.splice(start, end - start, ...ordered.slice(start, end).toReversed());
      start = end + 1;
    }
  }
  return ordered;
}
