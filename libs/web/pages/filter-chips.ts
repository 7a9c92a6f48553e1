import type { Localization } from '#translations/translations.js';
import { createTimeFormats } from './local-time.js';

/** What a list is narrowed by, with the path of the list without it. */
export type FilterChip = { text: string; path: string };

/** Creates the chips of the filters that are set. @param texts what each says, by its name; without one, the chip shows the value */
export function createFilterChips(
  base: string,
  fields: Readonly<Record<string, string>>,
  texts: Readonly<Record<string, string | undefined>>,
): FilterChip[] {
  const set = Object.entries(fields).filter(([, value]) => value !== '');
  return set.flatMap(([name, value]) => {
    const query = new URLSearchParams(set.filter(([other]) => other !== name)).toString();
    const text = texts[name] ?? value;
    return [{ text, path: query === '' ? base : `${base}?${query}` }];
  });
}

/** Describes the first and the last day of a filter, as YYYY-MM-DD or empty. */
export function describeDays(
  { from, to }: { from: string; to: string },
  { t: { words }, locale }: Localization,
): { from: string; to: string } {
  const { day } = createTimeFormats(locale, 'UTC');
  const describe = (label: string, date: string) =>
    date === '' ? '' : `${label} ${day(new Date(`${date}T00:00:00Z`))}`;
  return { from: describe(words.from, from), to: describe(words.until, to) };
}
