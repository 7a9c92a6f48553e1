import type { Translations } from '#translations/translations.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';

/** The choices of the filter for customers whose cards have not changed for so many days. */
export const INACTIVE_DAYS = [30, 60, 90, 180] as const;
export const PAGE_SIZE = 25;
const MAX_SEARCH = 255;
const MAX_PAGE = 1_000_000;
/** How many stamps may be missing to a reward that is near. */
const NEAR_STAMPS = 2;

/** The orders of the list, each first by what its name says. */
export const SORTS = ['newest', 'name', 'active', 'stamps'] as const;

/** The filters and the order of the list. Null and empty: no filter. */
export type ListFilter = {
  sort: (typeof SORTS)[number];
  search: string;
  cardId: number | null;
  isNear: boolean;
  inactiveDays: number | null;
  birthdayMonth: number | null;
};

const NARROWINGS = ['cardId', 'isNear', 'inactiveDays', 'birthdayMonth'] as const;
const NOTHING = { cardId: null, isNear: false, inactiveDays: null, birthdayMonth: null };

type CardState = {
  card_name: string;
  stamps_count: number;
  stamps_remaining: number;
  updated_at: string;
};

type Texts = Pick<Translations['customerPages']['person'], 'stampsOf' | 'stamps'>;

/** Reads the filter of a query; what is no choice of the form narrows nothing. */
export function parseListFilter(query: Readonly<Record<string, unknown>>): ListFilter {
  const days = parsePositiveInteger(query['inactive']);
  const month = parsePositiveInteger(query['birthday_month']);
  return {
    sort: SORTS.find((candidate) => candidate === query['sort']) ?? 'newest',
    search: readText(query['search']).trim().slice(0, MAX_SEARCH),
    cardId: parsePositiveInteger(query['card_id']),
    isNear: query['near'] === 'yes',
    inactiveDays: INACTIVE_DAYS.find((candidate) => candidate === days) ?? null,
    birthdayMonth: month !== null && month <= 12 ? month : null,
  };
}

export function parsePageNumber(value: unknown): number {
  return Math.min(MAX_PAGE, parsePositiveInteger(value) ?? 1);
}

/** Renders the query of a page of the list, without what it is not narrowed or sorted by. */
export function renderListQuery(filter: ListFilter, page: number): string {
  const { sort, search, cardId, isNear, inactiveDays, birthdayMonth } = filter;
  const query = new URLSearchParams({
    ...(search !== '' && { search }),
    ...(cardId !== null && { card_id: String(cardId) }),
    ...(isNear && { near: 'yes' }),
    ...(inactiveDays !== null && { inactive: String(inactiveDays) }),
    ...(birthdayMonth !== null && { birthday_month: String(birthdayMonth) }),
    ...(sort !== 'newest' && { sort }),
    ...(page > 1 && { page: String(page) }),
  }).toString();
  return query === '' ? '' : `?${query}`;
}

/** Lists the filters without each of what the list is narrowed by besides a search, by its name. */
export function listWiderFilters(
  filter: ListFilter,
): { name: (typeof NARROWINGS)[number]; filter: ListFilter }[] {
  return NARROWINGS.filter((name) => filter[name] !== NOTHING[name]).map((name) => ({
    name,
    filter: { ...filter, [name]: NOTHING[name] },
  }));
}

/** Returns how many stamps bring a customer near to a reward. @param cost of the cheapest reward of a card */
export function findNearStamps(cost: number): number {
  return Math.max(1, cost - NEAR_STAMPS);
}

/** Describes the balance of a card in a few words. */
export function describeBalance(
  { stamps_count: count, stamps_remaining: left }: Omit<CardState, 'card_name' | 'updated_at'>,
  t: Texts,
): string {
  return left > 0 ? t.stampsOf({ have: count, need: count + left }) : t.stamps({ count });
}

/** Finds the time of the last change to any of the cards. */
export function findLastChange(cards: readonly CardState[]): Date | null {
  const [last] = cards.map(({ updated_at: at }) => at).sort((a, b) => (a < b ? 1 : -1));
  return last === undefined ? null : new Date(last);
}

export function buildCustomerPath({ id: storeId }: { id: number }, id: number): string {
  return `/app/stores/${storeId}/customers/${id}`;
}

/** Reads a text of a query, without NUL, which a database cannot hold. */
export function readText(value: unknown): string {
  return typeof value === 'string' ? value.replaceAll('\0', '') : '';
}
