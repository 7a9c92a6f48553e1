/** A part of a line that is read in one direction. */
export type DirectedText = { text: string; isRightToLeft: boolean };

const RIGHT_TO_LEFT =
  /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
const LETTER = /\p{L}/u;
const DIGIT = /\p{Nd}/u;
/** Fonts would draw a number of these from the right, so each is drawn by itself. */
const EASTERN_DIGIT = /[\u0660-\u0669\u06F0-\u06F9]/;
/** Decides the direction of a line in place of its first letter, and is not drawn. */
const LEFT_TO_RIGHT_MARK = '\u200E';

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
// prettier-ignore
const MIRRORED = new Map([
  ['(', ')'], [')', '('], ['[', ']'], [']', '['], ['<', '>'], ['>', '<'], ['«', '»'], ['»', '«'],
]);

type Kind = 'right' | 'left' | 'digit' | 'neutral';

/** Lets a line be read from the left, even if it begins with a name that is read from the right. */
export function markLeftToRight(line: string): string {
  return RIGHT_TO_LEFT.test(line) ? `${LEFT_TO_RIGHT_MARK}${line}` : line;
}

/**
 * Splits a line into parts in the order in which they stand, from the left. Follows the Unicode Bidirectional Algorithm
 * (UAX #9) as far as names need it: no embeddings. A line has the direction of its first letter.
 */
export function splitByDirection(line: string): DirectedText[] {
  if (!RIGHT_TO_LEFT.test(line)) return [{ text: removeMark(line), isRightToLeft: false }];
  const parts = [...graphemes.segment(line)].map(({ segment }) => segment);
  const levels = findLevels(parts);
  const runs: { level: number; parts: string[] }[] = [];
  for (const [i, part] of parts.entries()) {
    const level = levels[i] ?? 0;
    const last = runs.at(-1);
    if (last?.level === level && !EASTERN_DIGIT.test(part)) last.parts.push(part);
    else runs.push({ level, parts: [part] });
  }
  return reorder(runs)
    .map((run) => ({ text: toDrawnText(run), isRightToLeft: run.level % 2 === 1 }))
    .filter(({ text }) => text !== '');
}

/** Finds the level of each part: odd ones are read from the right. */
function findLevels(parts: string[]): number[] {
  const kinds = parts.map(findKind);
  const base = kinds.find((kind) => kind === 'right' || kind === 'left') === 'right' ? 1 : 0;
  let lastLetter: Kind = base === 1 ? 'right' : 'left';
  const levels = kinds.map((kind): number | null => {
    if (kind === 'right' || kind === 'left') lastLetter = kind;
    if (kind === 'right') return 1;
    if (kind === 'left') return base === 0 ? 0 : 2;
    // A number stands within the text that it follows, but is itself read from the left.
    if (kind === 'digit') return base === 0 && lastLetter === 'left' ? 0 : 2;
    return null;
  });
  return levels.map((level, i) => {
    if (level !== null) return level;
    const before = levels.slice(0, i).findLast((neighbor) => neighbor !== null) ?? base;
    const after = levels.slice(i).find((neighbor) => neighbor !== null) ?? base;
    // Spaces around a number are those of the text around it.
    const sides = [before, after].map((side) => (side === 2 && base === 0 ? 1 : side));
    return sides[0] === sides[1] ? (sides[0] ?? base) : base;
  });
}

function findKind(part: string): Kind {
  if (part === LEFT_TO_RIGHT_MARK) return 'left';
  if (DIGIT.test(part)) return 'digit';
  if (RIGHT_TO_LEFT.test(part)) return 'right';
  return LETTER.test(part) ? 'left' : 'neutral';
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

function toDrawnText({ level, parts }: { level: number; parts: string[] }): string {
  const isMirrored = level % 2 === 1;
  return removeMark(
    parts.map((part) => (isMirrored ? (MIRRORED.get(part) ?? part) : part)).join(''),
  );
}

const removeMark = (text: string) => text.replaceAll(LEFT_TO_RIGHT_MARK, '');
