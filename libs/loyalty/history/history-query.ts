import type { CursorKey } from '#platform/http/page.js';
import { formatPosition, type Position } from '#platform/event-store/port/position.js';
import type { HistoryEntry } from './entry.js';

/** Narrows a list of the history; null: not by this field. Times are those of recording. */
export type HistoryFilter = {
  customerId: number | null;
  customerCardId: number | null;
  cardId: number | null;
  locationId: number | null;
  name: string | null;
  channel: string | null;
  /** As in `token:5`. */
  actor: string | null;
  from: Date | null;
  /** Exclusive. */
  to: Date | null;
};

export const NO_FILTER: HistoryFilter = {
  customerId: null,
  customerCardId: null,
  cardId: null,
  locationId: null,
  name: null,
  channel: null,
  actor: null,
  from: null,
  to: null,
};

/** The rows of a list: those with numbers from `low` to `high`, both inclusive, the newest first. */
export type Slice = { accountId: number; low: number; high: number; limit: number };

/** Each filter with its column. */
const FILTERS: [Exclude<keyof HistoryFilter, 'from' | 'to'>, string][] = [
  ['customerCardId', 'customer_card_id'],
  ['customerId', 'customer_id'],
  ['locationId', 'location_id'],
  ['cardId', 'card_id'],
  ['actor', 'actor'],
  ['name', 'name'],
  ['channel', 'channel'],
];

/** Greater than every number of an entry. */
export const MAX_SEQ = Number.MAX_SAFE_INTEGER;

/**
 * How many entries one statement looks through for those that match other filters. Few at first: then the planner expects to
 * stop early, and reads them in the order of their index.
 */
export const WINDOWS = { first: 1_000, next: 20_000 };

/** The entries about a customer card that are not of its own stream; they have an index of their own. */
const CARD_LINKS_REQUESTED = 'customer.card_links_requested';

export const getCardStream = (customerCardId: number) => `customer_card-${customerCardId}`;

/** The values of the columns that an index has in front of `seq`. */
export type IndexKey = ReadonlyMap<string, unknown>;

/** Lists the index keys of which each entry that matches a filter has exactly one. */
export function listIndexKeys(accountId: number, filter: HistoryFilter): IndexKey[] {
  const { customerCardId, customerId, actor, name } = filter;
  const store: [string, unknown] = ['account_id', accountId];
  if (customerCardId !== null) {
    const keys: IndexKey[] = [new Map([['stream', getCardStream(customerCardId)]])];
    if ((name ?? CARD_LINKS_REQUESTED) === CARD_LINKS_REQUESTED)
      keys.push(new Map([['customer_card_id', customerCardId]]));
    return keys;
  }
  if (customerId !== null) return [new Map([['customer_id', customerId]])];
  if (actor !== null) return [new Map([store, ['actor', actor]])];
  return [new Map(name === null ? [store] : [store, ['name', name]])];
}

type Query = { text: string; values: unknown[] };

/**
 * Creates the query for a slice of the entries with an index key. It compares and sorts by whole index keys, which only that
 * index can serve: with plain conditions and an order by number alone, the planner may walk back through the entries of all
 * stores.
 * @returns `end` where other filters apply, which few entries may match: `rows` finds those of a window, and `end` its last
 *   number, unless it is the last window
 */
export function createHistoryQuery(
  columns: string,
  { accountId, low, high, limit }: Slice,
  filter: HistoryFilter,
  key: IndexKey,
  window = WINDOWS.first,
): { rows: Query; end: Query | null } {
  const values: unknown[] = [];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const keyColumns = [...key.keys(), 'seq'];
  const places = [...key.values()].map(value);
  const createKey = (seq: number) => `(${[...places, value(seq)].join(', ')})`;
  const order = `order by ${keyColumns.map((column) => `${column} desc`).join(', ')}`;
  const slice = `from history where (${keyColumns.join(', ')}) between ${createKey(low)} and ${createKey(high)}
    ${key.has('customer_id') ? 'and customer_id is not null' : ''}
    ${key.has('customer_card_id') ? `and name = '${CARD_LINKS_REQUESTED}'` : ''}`;
  const end = {
    text: `select seq ${slice} ${order} offset ${window - 1} limit 1`,
    values: [...values],
  };
  const filters = FILTERS.filter(
    ([name, column]) =>
      filter[name] !== null &&
      !key.has(column) &&
      !(column === 'customer_card_id' && key.has('stream')),
  );
  const conditions = filters.map(([name, column]) => `${column} = ${value(filter[name])}`);
  // An equality would let the planner read everything of the store as well, to combine the two.
  if (!key.has('account_id'))
    conditions.push(`account_id is not distinct from ${value(accountId)}`);
  if (filter.from !== null) conditions.push(`recorded_at >= ${value(filter.from)}`);
  if (filter.to !== null) conditions.push(`recorded_at < ${value(filter.to)}`);
  const isWindow = filters.length > 0;
  const from = isWindow
    ? `from (select * ${slice} ${order} limit ${window}) h where`
    : `${slice} and`;
  const text = `select ${columns} ${from} ${conditions.join(' and ') || 'true'} ${order} limit ${value(limit)}`;
  return { rows: { text, values }, end: isWindow ? end : null };
}

/** Applies the filter to entries that are not in the table. */
export function matchesFilter(filter: HistoryFilter, entry: HistoryEntry): boolean {
  const at = new Date(entry.recordedAt);
  return (
    FILTERS.every(([name]) => filter[name] === null || filter[name] === entry[name]) &&
    (filter.from === null || at >= filter.from) &&
    (filter.to === null || at < filter.to)
  );
}

/** Creates the cursor of an entry. Positions stay, while the number of an entry that is not in the table may not. */
export function toCursorKey({ position }: { position: Position }): CursorKey {
  return [Number(position.commit), Number(position.prepare)];
}

export function toPosition([commit = 0, prepare = 0]: CursorKey): Position {
  return { commit: BigInt(commit), prepare: BigInt(prepare) };
}

export const formatCursorPosition = (key: CursorKey): string => formatPosition(toPosition(key));
