import { describe, expect, it } from '@jest/globals';
import { assertThreshold, changeRule, listCelebrations, type MessageRule } from './message-rule.js';

const RULE: MessageRule = {
  id: 1,
  accountId: 1,
  kind: 'inactive',
  threshold: 60,
  cardId: null,
  title: 'We miss you',
  text: 'Come by for a coffee',
  channels: ['wallet'],
  enabled: false,
  createdAt: new Date(0),
  updatedAt: new Date(0),
};

describe('assertThreshold', () => {
  it.each([
    ['stamps_away', 1],
    ['stamps_away', 10],
    ['reward_unused', 365],
    ['inactive', 730],
    ['birthday', null],
  ] as const)('accepts %s with %s', (kind, threshold) => {
    expect(() => assertThreshold(kind, threshold)).not.toThrow();
  });

  it.each([
    ['stamps_away', 0, /1 to 10 stamps/],
    ['stamps_away', 11, /1 to 10 stamps/],
    ['reward_unused', 366, /1 to 365 days/],
    ['inactive', null, /1 to 730 days/],
    ['birthday', 3, /must be null/],
  ] as const)('refuses %s with %s', (kind, threshold, message) => {
    expect(() => assertThreshold(kind, threshold)).toThrow(message);
  });
});

describe('changeRule', () => {
  it('changes what is named, and leaves the rest', () => {
    expect(changeRule(RULE, { enabled: true, threshold: 30 })).toEqual({
      ...RULE,
      threshold: 30,
      enabled: true,
    });
  });

  it('refuses a threshold that does not suit the kind', () => {
    expect(() => changeRule(RULE, { threshold: null })).toThrow(/1 to 730 days/);
  });
});

describe('listCelebrations', () => {
  const list = (from: string, to: string, timeZone = 'Europe/Berlin') =>
    listCelebrations(new Date(from), new Date(to), timeZone).map(
      ({ birthday, at }) => `${birthday} ${at.toISOString()}`,
    );

  it('lists the days that begin in between, by the clock of the store', () => {
    expect(list('2026-07-01T22:00:00Z', '2026-07-03T22:00:00Z')).toEqual([
      '2026-07-03 2026-07-02T22:00:00.000Z',
      '2026-07-04 2026-07-03T22:00:00.000Z',
    ]);
    expect(list('2025-12-31T10:00:00Z', '2025-12-31T12:00:00Z', 'Pacific/Auckland')).toEqual([
      '2026-01-01 2025-12-31T11:00:00.000Z',
    ]);
    expect(list('2026-07-01T10:00:00Z', '2026-07-01T12:00:00Z')).toEqual([]);
  });

  it('celebrates 29 February on the 28th of years that have none', () => {
    const days = (year: number) =>
      list(`${year}-02-27T12:00:00Z`, `${year}-03-01T12:00:00Z`).map((one) => one.slice(0, 10));
    expect(days(2027)).toEqual(['2027-02-28', '2027-02-29', '2027-03-01']);
    expect(days(2028)).toEqual(['2028-02-28', '2028-02-29', '2028-03-01']);
  });
});
