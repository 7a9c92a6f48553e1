import type { CursorKey } from '#http/page.js';
import { formatPosition, type Position } from '#event-store/port/position.js';
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

/** Each filter with its column, and the index that has it in front of `seq`; the first that is given leads. */
const FILTERS: [Exclude<keyof HistoryFilter, 'from' | 'to'>, string, string[]][] = [
  ['customerCardId', 'customer_card_id', ['customer_card_id', 'seq']],
  ['customerId', 'customer_id', ['customer_id', 'seq']],
  ['locationId', 'location_id', ['location_id', 'seq']],
  ['cardId', 'card_id', ['card_id', 'seq']],
  ['actor', 'actor', ['account_id', 'actor', 'seq']],
  ['name', 'name', ['account_id', 'name', 'seq']],
  ['channel', 'channel', ['account_id', 'channel', 'seq']],
];

/**
 * Creates the query for a slice. It compares and sorts by whole index keys, which only that index can serve: with plain
 * conditions and an order by number alone, the planner may walk back through the entries of all stores.
 */
export function createHistoryQuery(
  columns: string,
  { accountId, low, high, limit }: Slice,
  filter: HistoryFilter,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const value = (parameter: unknown) => `$${values.push(parameter)}`;
  const placeholders = new Map<string, string>([['account_id', value(accountId)]]);
  for (const [name, column] of FILTERS) {
    if (filter[name] !== null) placeholders.set(column, value(filter[name]));
  }
  const [, leader, key] = FILTERS.find(([, column]) => placeholders.has(column)) ?? [
    '',
    'account_id',
    ['account_id', 'seq'],
  ];
  const createKey = (seq: number) =>
    `(${key.map((column) => (column === 'seq' ? value(seq) : placeholders.get(column))).join(', ')})`;
  const keyColumns = `(${key.join(', ')})`;
  const conditions = [`${keyColumns} >= ${createKey(low)}`, `${keyColumns} <= ${createKey(high)}`];
  // What the partial indexes are made for; the comparison of keys does not tell the planner.
  if (key.length === 2 && leader !== 'account_id') conditions.push(`${leader} is not null`);
  for (const [column, place] of placeholders) {
    // An equality would let the planner read everything of the store as well, to combine the two.
    if (!key.includes(column)) conditions.push(`${column} is not distinct from ${place}`);
  }
  if (filter.from !== null) conditions.push(`recorded_at >= ${value(filter.from)}`);
  if (filter.to !== null) conditions.push(`recorded_at < ${value(filter.to)}`);
  const order = key.map((column) => `${column} desc`).join(', ');
  const text = `select ${columns} from history where ${conditions.join(' and ')}
    order by ${order} limit ${value(limit)}`;
  return { text, values };
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
