import type { CursorKey } from '#platform/http/page.js';
import { isAfter } from '#platform/event-store/port/position.js';
import type { HistoryEntry } from './entry.js';
import { toPosition, WINDOWS } from './history-query.js';

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

/** Each filter with its column. */
const FILTERS: [Exclude<keyof RedemptionFilter, 'from' | 'to'>, string][] = [
  ['customerId', 'customer_id'],
  ['rewardId', 'reward_id'],
  ['locationId', 'location_id'],
  ['cardId', 'card_id'],
];

/** Selects stampings and redemptions among the entries `h` of the history. The index on visits has the same condition. */
export const IS_VISIT = `(h.name = 'reward.redeemed'
  or h.name = 'stamp.earned' and h.reverses is null and h.source in ('api', 'pos', 'app_scan'))`;

/** A place in the list: what comes after it is older, or has a lower number. */
export type RedemptionPlace = { at: Date | string; seq: number };

type Query = { text: string; values: unknown[] };

/**
 * Creates the query for the newest redemptions after a place, in the table of the history up to an entry. Numbers are in the
 * order of positions. They are found by the store, or among the visits of a
 * customer.
 * @returns `end` where other filters apply: see `createHistoryQuery`
 */
export function createRedemptionQuery(
  columns: string,
  { accountId, end: lastSeq, limit }: { accountId: number; end: number; limit: number },
  filter: RedemptionFilter,
  after: RedemptionPlace | null,
  window = WINDOWS.first,
): { rows: Query; end: Query | null } {
  const values: unknown[] = [];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const { customerId } = filter;
  // Literally, for the partial indexes.
  const index =
    customerId === null
      ? `h.name = '${REDEEMED}' and h.account_id = ${value(accountId)}`
      : `${IS_VISIT} and h.customer_id = ${value(customerId)}`;
  const bounds = [index, `h.seq <= ${value(lastSeq)}`];
  if (filter.from) bounds.push(`h.occurred_at >= ${value(filter.from)}`);
  if (filter.to) bounds.push(`h.occurred_at < ${value(filter.to)}`);
  if (after)
    bounds.push(
      `(h.occurred_at, h.seq) < (${value(after.at)}::timestamptz, ${value(after.seq)}::bigint)`,
    );
  const order = 'order by h.occurred_at desc, h.seq desc';
  const slice = `from history h where ${bounds.join(' and ')} ${order}`;
  const end = {
    text: `select h.occurred_at::text as at, h.seq ${slice} offset ${window - 1} limit 1`,
    values: [...values],
  };
  const conditions = FILTERS.flatMap(([name, column]) =>
    filter[name] === null || name === 'customerId' ? [] : `h.${column} = ${value(filter[name])}`,
  );
  if (customerId !== null)
    conditions.push(`h.name = '${REDEEMED}'`, `h.account_id = ${value(accountId)}`);
  const isWindow = conditions.length > 0;
  const text = isWindow
    ? `select ${columns} from (select * ${slice} limit ${window}) h where ${conditions.join(' and ')} ${order}`
    : `select ${columns} ${slice}`;
  return {
    rows: { text: `${text} limit ${value(limit)}`, values },
    end: isWindow ? end : null,
  };
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
