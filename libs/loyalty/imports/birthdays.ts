import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** The order of day and month in dates with slashes. */
export type DateOrder = 'dmy' | 'mdy';

const ISO = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?$/;
const DOTTED = /^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})$/;
const SLASHED = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/;

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
    const [, first, second] = SLASHED.exec(cell.text) ?? [];
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
export function parseBirthday(text: string, order: DateOrder | null): string | undefined {
  const iso = ISO.exec(text);
  if (iso) return toIso(iso[1], iso[2], iso[3]);
  const dotted = DOTTED.exec(text);
  if (dotted) return toIso(dotted[3], dotted[2], dotted[1]);
  const slashed = SLASHED.exec(text);
  if (!slashed) return undefined;
  const [, first, second, year] = slashed;
  if (order === null && Number(first) !== Number(second)) return undefined;
  return order === 'mdy' ? toIso(year, first, second) : toIso(year, second, first);
}

function toIso(year = '', month = '', day = ''): string {
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
}
