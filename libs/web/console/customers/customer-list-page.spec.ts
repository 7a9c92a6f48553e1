import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import {
  describeBalance,
  findLastChange,
  findNearStamps,
  listWiderFilters,
  parseListFilter,
  parsePageNumber,
  renderListQuery,
} from './customer-list-page.js';

const NOTHING = {
  sort: 'newest' as const,
  search: '',
  cardId: null,
  isNear: false,
  inactiveDays: null,
  birthdayMonth: null,
};

describe('the list of customers', () => {
  it.each([
    [{}, NOTHING, ''],
    [{ search: ' Anna & Bo ' }, { ...NOTHING, search: 'Anna & Bo' }, '?search=Anna+%26+Bo'],
    [
      { card_id: '7', near: 'yes', inactive: '30', birthday_month: '12' },
      { ...NOTHING, cardId: 7, isNear: true, inactiveDays: 30, birthdayMonth: 12 },
      '?card_id=7&near=yes&inactive=30&birthday_month=12',
    ],
    [{ card_id: '-1', near: 'no', inactive: '31', birthday_month: '13' }, NOTHING, ''],
    [
      { sort: 'name', search: 'Bo' },
      { ...NOTHING, sort: 'name', search: 'Bo' },
      '?search=Bo&sort=name',
    ],
    [{ sort: 'state' }, NOTHING, ''],
    [{ search: ['a', 'b'], card_id: '1e3' }, NOTHING, ''],
    [{ search: '\0Anna' }, { ...NOTHING, search: 'Anna' }, '?search=Anna'],
  ])('reads the filter %j', (query, filter, rendered) => {
    expect(parseListFilter(query)).toEqual(filter);
    expect(renderListQuery(parseListFilter(query), 1)).toBe(rendered);
  });

  it('has pages from 1', () => {
    expect([undefined, '0', '3', 'x', '99999999999'].map(parsePageNumber)).toEqual([
      1, 1, 3, 1, 1_000_000,
    ]);
    expect(renderListQuery(NOTHING, 2)).toBe('?page=2');
  });

  it('leads to itself without each filter, and keeps a search', () => {
    const search = { ...NOTHING, search: 'Anna' };
    expect(listWiderFilters(search)).toEqual([]);
    const cardOnly = { ...search, cardId: 1 };
    expect(listWiderFilters({ ...cardOnly, isNear: true })).toEqual([
      { name: 'cardId', filter: { ...search, isNear: true } },
      { name: 'isNear', filter: cardOnly },
    ]);
  });

  it('counts two stamps less than the cheapest reward as near', () => {
    expect(findNearStamps(5)).toBe(3);
    expect(findNearStamps(2)).toBe(1);
  });

  it('describes a balance, also beyond a full card', () => {
    const t = getTranslations('en').t.customerPages.person;
    expect(describeBalance({ stamps_count: 6, stamps_remaining: 4 }, t)).toBe('6 of 10 stamps');
    expect(describeBalance({ stamps_count: 13, stamps_remaining: 0 }, t)).toBe('13 stamps');
  });

  it('finds the last change of several cards', () => {
    const card = { card_name: '', stamps_count: 0, stamps_remaining: 0 };
    const times = ['2026-01-02T00:00:00.000Z', '2026-03-02T00:00:00.000Z'];
    expect(findLastChange(times.map((updated_at) => ({ ...card, updated_at })))).toEqual(
      new Date('2026-03-02T00:00:00.000Z'),
    );
    expect(findLastChange([])).toBeNull();
  });
});
