import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** The order of day and month in dates with slashes or dashes. */
export type DateOrder = 'dmy' | 'mdy';

/** Matches a midnight that programs add, with or without a time zone. */
const MIDNIGHT = String.raw`(?:[T ]\s?(?:0?0:00(?::00(?:\.0+)?)?|12:00(?::00)?\s?[aA]\.?[mM]\.?)(?:\s?(?:Z|UTC|[+-]00:?00))?)?`;
const createPattern = (date: string) => new RegExp(`^${date}${MIDNIGHT}$`, 'u');
/** Matches dates from the year on: ISO 8601, and as they are written from Hungary and Lithuania to China, Japan and Korea. */
const YEAR_FIRST = [
  createPattern(String.raw`(\d{4})([-/.])\s?(\d{1,2})\2\s?(\d{1,2})\.?`),
  createPattern(String.raw`(\d{4})()[年년]\s?(\d{1,2})[月월]\s?(\d{1,2})[日일]`),
  createPattern(String.raw`((?:19|20)\d{2})()(\d{2})(\d{2})`),
];
/** Matches dates with points, where the day comes first everywhere; some languages end them with one. */
const DOTTED = createPattern(String.raw`(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\.?`);
const SLASHED = createPattern(String.raw`(\d{1,2})\s?([-/])\s?(\d{1,2})\s?\2\s?(\d{4})`);
/** Marks of the direction of text, which programs for right-to-left scripts put around dates. */
const DIRECTION = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;
const DASHES = /[\u2010-\u2015\u2212]/g;

export type DateCell = { row: number; text: string };

type DateOrderResult = { order: DateOrder | null; error?: never } | { order?: never; error: Issue };

/**
 * Finds the order of day and month in a column of dates. Every date of the column counts: 13/01/2000 shows that the day
 * comes first. Without one that shows it, 03/04/2000 is refused instead of guessed.
 */
export function findDateOrder(cells: Iterable<DateCell>): DateOrderResult {
  const rows: Record<DateOrder | 'either', DateCell | undefined> = {
    dmy: undefined,
    mdy: undefined,
    either: undefined,
  };
  for (const cell of cells) {
    const [, first, , second] = SLASHED.exec(normalizeDate(cell.text)) ?? [];
    if (first === undefined || second === undefined || Number(first) === Number(second)) continue;
    const order = Number(first) > 12 ? 'dmy' : Number(second) > 12 ? 'mdy' : 'either';
    rows[order] ??= cell;
  }
  const { dmy, mdy, either } = rows;
  if (dmy && mdy) {
    return {
      error: ISSUES.date_order_mixed({ dayFirst: dmy.row, monthFirst: mdy.row }),
    };
  }
  if (dmy || mdy) return { order: dmy ? 'dmy' : 'mdy' };
  if (!either) return { order: null };
  return {
    error: ISSUES.date_order_unclear({ row: either.row }),
  };
}

/**
 * Parses a date to YYYY-MM-DD; undefined for text in none of the notations, and for a date that needs an order and has
 * none. The date need not exist.
 */
export function parseBirthday(input: string, order: DateOrder | null): string | undefined {
  const text = normalizeDate(input);
  for (const pattern of YEAR_FIRST) {
    const [, year, , month, day] = pattern.exec(text) ?? [];
    if (year !== undefined) return toIso(year, month, day);
  }
  const dotted = DOTTED.exec(text);
  if (dotted) return toIso(dotted[3], dotted[2], dotted[1]);
  const [, first, , second, year] = SLASHED.exec(text) ?? [];
  if (year === undefined) return undefined;
  if (order === null && Number(first) !== Number(second)) return undefined;
  return order === 'mdy' ? toIso(year, first, second) : toIso(year, second, first);
}

function normalizeDate(text: string): string {
  return text.normalize('NFKC').replaceAll(DIRECTION, '').replaceAll(DASHES, '-').trim();
}

function toIso(year = '', month = '', day = ''): string {
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
}
