import { describe, expect, it } from '@jest/globals';
import {
  getEarliestSunset,
  decideRetirementStep,
  renderDate,
  type Announcement,
} from './retirement.js';

const NOW = new Date('2026-11-21T22:10:00Z');
const dates = (deprecated: string, sunset?: string) => ({
  deprecatedAt: new Date(deprecated),
  sunsetAt: sunset === undefined ? null : new Date(sunset),
});
const createAnnouncement = (on: string, deprecated: string, sunset?: string): Announcement => ({
  announcedAt: new Date(on),
  ...dates(deprecated, sunset),
});

describe('the first start with dates', () => {
  it('announces the dates', () => {
    expect(decideRetirementStep(dates('2026-01-01', '2027-11-22'), undefined, NOW)).toEqual({
      kind: 'announce',
    });
    expect(decideRetirementStep(dates('2020-01-01'), undefined, NOW)).toEqual({ kind: 'announce' });
  });

  it.each(['2020-01-01', '2027-11-21', '2027-11-21T22:09:59Z'])(
    'refuses %s as the sunset date, however long ago the deprecation date is',
    (sunset) => {
      expect(decideRetirementStep(dates('2018-01-01', sunset), undefined, NOW)).toEqual({
        kind: 'refuse',
        reason:
          'API_V1_SUNSET_DATE: must be 2027-11-22 or later, because this start is the first to announce that v1 is being retired, and callers get twelve months.',
      });
    },
  );

  it('accepts a sunset date exactly twelve months ahead', () => {
    expect(
      decideRetirementStep(dates('2026-01-01', '2027-11-21T22:10:00Z'), undefined, NOW).kind,
    ).toBe('announce');
  });
});

describe('a later start', () => {
  const announcement = createAnnouncement('2026-01-10T08:00:00Z', '2026-02-01', '2028-02-01');

  it('changes nothing when the dates are the same, even after the sunset date', () => {
    const same = dates('2026-02-01', '2028-02-01');
    expect(decideRetirementStep(same, announcement, NOW)).toEqual({ kind: 'none' });
    expect(decideRetirementStep(same, announcement, new Date('2030-01-01'))).toEqual({
      kind: 'none',
    });
  });

  it('accepts another deprecation date, a later sunset date and none', () => {
    for (const otherDates of [
      dates('2026-06-01', '2028-02-01'),
      dates('2026-02-01', '2029-02-01'),
      dates('2026-02-01'),
    ]) {
      expect(decideRetirementStep(otherDates, announcement, NOW)).toEqual({ kind: 'change' });
    }
    // The version is available again.
    expect(
      decideRetirementStep(dates('2026-02-01', '2031-01-02'), announcement, new Date('2031-01-01')),
    ).toEqual({ kind: 'change' });
  });

  it('refuses a sunset date less than twelve months after the announcement', () => {
    expect(decideRetirementStep(dates('2026-01-01', '2027-01-10'), announcement, NOW)).toEqual({
      kind: 'refuse',
      reason:
        'API_V1_SUNSET_DATE: must be 2027-01-11 or later, twelve months after the retirement of v1 was announced on 2026-01-10.',
    });
    expect(decideRetirementStep(dates('2026-01-01', '2027-01-11'), announcement, NOW).kind).toBe(
      'change',
    );
  });

  it.each([
    ['an earlier sunset date', announcement],
    ['a first sunset date', createAnnouncement('2020-01-01', '2020-01-01')],
  ])('refuses %s less than 30 days ahead', (_what, previous) => {
    const later = new Date('2027-05-01T12:00:00Z');
    expect(decideRetirementStep(dates('2020-01-01', '2027-05-31'), previous, later)).toEqual({
      kind: 'refuse',
      reason:
        'API_V1_SUNSET_DATE: must be 2027-06-01 or later, because a date that was not announced yet, or is earlier than announced, is told 30 days ahead.',
    });
    expect(decideRetirementStep(dates('2020-01-01', '2027-06-01'), previous, later).kind).toBe(
      'change',
    );
  });

  it('refuses missing dates of an announced retirement and says what to do', () => {
    expect(decideRetirementStep(null, announcement, NOW)).toEqual({
      kind: 'refuse',
      reason:
        'API_V1_DEPRECATION_DATE: v1 was announced on 2026-01-10 as deprecated from 2026-02-01 and retired from 2028-02-01, so set these dates again, or withdraw them with inkpad retirement:withdraw.',
    });
    expect(decideRetirementStep(null, undefined, NOW)).toEqual({ kind: 'none' });
  });
});

it('getEarliestSunset returns the same day of the next year, or the day after a leap day', () => {
  expect(getEarliestSunset(new Date('2027-02-01T12:00:00Z'))).toEqual(
    new Date('2028-02-01T12:00:00Z'),
  );
  expect(getEarliestSunset(new Date('2028-02-29'))).toEqual(new Date('2029-03-01'));
});

it('renderDate renders midnight as a day, and other moments in full', () => {
  const renderedDates = ['2028-02-01', '2028-02-01T12:30:00Z', '2028-02-01T00:00:00.500Z'].map(
    (text) => renderDate(new Date(text)),
  );
  expect(renderedDates).toEqual(['2028-02-01', '2028-02-01T12:30:00Z', '2028-02-01T00:00:00.500Z']);
});
