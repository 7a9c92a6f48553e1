import { COUNTS, type HourCounts } from './visits.js';

/** The columns of an hour and their types, without the generation of the counts. */
const COLUMNS: Record<string, string> = {
  account_id: 'bigint',
  card_id: 'bigint',
  location_id: 'bigint',
  user_id: 'bigint',
  day: 'date',
  hour: 'smallint',
  ...Object.fromEntries(COUNTS.map((name) => [name, 'bigint'])),
};

const NAMES = Object.keys(COLUMNS).join(', ');

/** Renders an SQL relation of hours, whose parameters `toHourParameters` creates. @param first the number of its first parameter */
export function renderHours(first: number): string {
  const columns = Object.values(COLUMNS).map((type, i) => `$${first + i}::${type}[]`);
  return `unnest(${columns.join(', ')}) as x (${NAMES})`;
}

/**
 * Renders SQL that adds hours to what was counted.
 * @param generation an SQL expression over `x`, the hour
 * @param condition on which they are added
 */
export function renderAddition(first: number, generation: string, condition = 'true'): string {
  return `insert into statistics_hours as h (generation, ${NAMES})
    select ${generation}, x.* from ${renderHours(first)} where ${condition}
    on conflict (account_id, generation, card_id, location_id, user_id, day, hour) do update
      set ${COUNTS.map((name) => `${name} = h.${name} + excluded.${name}`).join(', ')}`;
}

/**
 * Renders SQL for a digest of the counts of each hour. Those with nothing but zeros are left out.
 * @param from a relation of hours `x`, with a condition
 */
export function renderDigests(from: string): string {
  return `select to_char(x.day, 'YYYY-MM-DD') as day, x.hour,
      sum(hashtextextended(concat_ws(' ', x.card_id, x.location_id, x.user_id, ${COUNTS.map((name) => `x.${name}`).join(', ')}), 0))::text
        as digest
    from ${from} and (${COUNTS.map((name) => `x.${name} <> 0`).join(' or ')}) group by x.day, x.hour`;
}

/** The digest of the counts of an hour, whatever the cards, locations and users. @property digest a number of any size */
export type HourDigest = { day: string; hour: number; digest: string };

export type HourRow = (number | string)[];

/** Lists the hours of a store as rows. */
export function toHourRows(accountId: number, counts: HourCounts): HourRow[] {
  return counts
    .list()
    .map(({ hour: { cardId, locationId, userId, day, hour }, counts: numbers }) => [
      accountId,
      cardId,
      locationId,
      userId,
      day,
      hour,
      ...numbers,
    ]);
}

/** Creates the parameters of `renderHours`. */
export function toHourParameters(rows: HourRow[]): unknown[] {
  return Object.keys(COLUMNS).map((_, i) => rows.map((row) => row[i]));
}
