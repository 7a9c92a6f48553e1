import { describe, expect, it } from '@jest/globals';
import { listCelebrations } from './celebrations.js';

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
      list(`${year}-02-27T12:00:00Z`, `${year}-03-01T12:00:00Z`).map((time) => time.slice(0, 10));
    expect(days(2027)).toEqual(['2027-02-28', '2027-02-29', '2027-03-01']);
    expect(days(2028)).toEqual(['2028-02-28', '2028-02-29', '2028-03-01']);
  });
});
