import type { CursorKey, PageRange } from '#http/page.js';
import { isAfter } from '#event-store/port/position.js';
import type { HistoryEntry } from './entry.js';
import { formatCursorPosition, toPosition } from './history-query.js';

/** Narrows a list of redemptions; null: not by this field. */
export type RedemptionFilter = {
  cardId: number | null;
  customerId: number | null;
  rewardId: number | null;
  locationId: number | null;
  /** Times are of when they happened. */
  from: Date | null;
  /** Exclusive. */
  to: Date | null;
};

export const NO_REDEMPTION_FILTER: RedemptionFilter = {
  cardId: null,
  customerId: null,
  rewardId: null,
  locationId: null,
  from: null,
  to: null,
};

export const REDEEMED = 'reward.redeemed';

/** Each filter with its column, which leads an index with (occurred_at, position); the first that is given is used. */
const FILTERS: [Exclude<keyof RedemptionFilter, 'from' | 'to'>, string][] = [
  ['customerId', 'customer_id'],
  ['rewardId', 'reward_id'],
  ['locationId', 'location_id'],
  ['cardId', 'card_id'],
];

/** Creates the query for the newest redemptions after a key, in the table of the history up to an entry. */
export function createRedemptionQuery(
  columns: string,
  { accountId, end }: { accountId: number; end: number },
  filter: RedemptionFilter,
  { after, limit }: PageRange,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const placeholders = new Map<string, string>([['account_id', value(accountId)]]);
  for (const [name, column] of FILTERS) {
    if (filter[name] !== null) placeholders.set(column, value(filter[name]));
  }
  const leader = FILTERS.find(([name]) => filter[name] !== null)?.[1] ?? 'account_id';
  const createKey = (time: Date | string, position: string) =>
    `(${value(time)}::timestamptz, ${value(position)})`;
  const key = '(occurred_at, position)';
  const conditions = [
    // Literally, for the partial indexes.
    `name = '${REDEEMED}'`,
    `${leader} = ${placeholders.get(leader)}`,
    `seq <= ${value(end)}`,
  ];
  if (filter.from) conditions.push(`${key} >= ${createKey(filter.from, '')}`);
  if (filter.to) conditions.push(`${key} < ${createKey(filter.to, '')}`);
  if (after) conditions.push(`${key} < ${createKey(readTime(after), formatKeyPosition(after))}`);
  for (const [column, place] of placeholders) {
    // An equality would let the planner read everything of the store as well, to combine the two.
    if (column !== leader) conditions.push(`${column} is not distinct from ${place}`);
  }
  const text = `select ${columns} from history where ${conditions.join(' and ')}
    order by occurred_at desc, position desc limit ${value(limit)}`;
  return { text, values };
}

/** Applies the filter to entries that are not in the table. */
export function isRedemption(filter: RedemptionFilter, entry: HistoryEntry): boolean {
  const at = new Date(entry.occurredAt);
  return (
    entry.name === REDEEMED &&
    FILTERS.every(([name]) => filter[name] === null || filter[name] === entry[name]) &&
    (filter.from === null || at >= filter.from) &&
    (filter.to === null || at < filter.to)
  );
}

/** Creates the cursor of a redemption. */
export function toRedemptionKey({
  occurredAt,
  position,
}: Pick<HistoryEntry, 'occurredAt' | 'position'>): CursorKey {
  return [Date.parse(occurredAt), Number(position.commit), Number(position.prepare)];
}

/** Tells whether the redemption is older than a key, and so after it in the list. */
export function isOlder(
  entry: Pick<HistoryEntry, 'occurredAt' | 'position'>,
  after: CursorKey,
): boolean {
  const [time = 0] = after;
  const own = Date.parse(entry.occurredAt);
  if (own !== time) return own < time;
  return isAfter(toPosition(after.slice(1)), entry.position);
}

function readTime([time = 0]: CursorKey): Date {
  return new Date(time);
}

function formatKeyPosition(key: CursorKey): string {
  return formatCursorPosition(key.slice(1));
}
