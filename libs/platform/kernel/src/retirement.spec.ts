import { describe, expect, it } from '@jest/globals';
import { earliestSunset, retirementStep, shownDate, type Announcement } from './retirement.js';

const NOW = new Date('2026-11-21T22:10:00Z');
const dates = (deprecated: string, sunset?: string) => ({
  deprecatedAt: new Date(deprecated),
  sunsetAt: sunset === undefined ? null : new Date(sunset),
});
const announced = (on: string, deprecated: string, sunset?: string): Announcement => ({
  announcedAt: new Date(on),
  ...dates(deprecated, sunset),
});

describe('the first start with dates', () => {
  it('announces them', () => {
    expect(retirementStep(dates('2026-01-01', '2027-11-22'), undefined, NOW)).toEqual({
      kind: 'announce',
    });
    expect(retirementStep(dates('2020-01-01'), undefined, NOW)).toEqual({ kind: 'announce' });
  });

  it.each(['2020-01-01', '2027-11-21', '2027-11-21T22:09:59Z'])(
    'refuses %s as the end, however long ago the deprecation is said to be',
    (sunset) => {
      expect(retirementStep(dates('2018-01-01', sunset), undefined, NOW)).toEqual({
        kind: 'refuse',
        why: 'API_V1_SUNSET_DATE: must be 2027-11-22 or later, because this start is the first to announce that v1 is being retired, and callers get twelve months.',
      });
    },
  );

  it('takes the moment itself', () => {
    expect(retirementStep(dates('2026-01-01', '2027-11-21T22:10:00Z'), undefined, NOW).kind).toBe(
      'announce',
    );
  });
});

describe('a later start', () => {
  const known = announced('2026-01-10T08:00:00Z', '2026-02-01', '2028-02-01');

  it('changes nothing with the same dates, also when the version is retired', () => {
    const same = dates('2026-02-01', '2028-02-01');
    expect(retirementStep(same, known, NOW)).toEqual({ kind: 'none' });
    expect(retirementStep(same, known, new Date('2030-01-01'))).toEqual({ kind: 'none' });
  });

  it('may move the deprecation, move the end away, or take it back', () => {
    for (const changed of [
      dates('2026-06-01', '2028-02-01'),
      dates('2026-02-01', '2029-02-01'),
      dates('2026-02-01'),
    ]) {
      expect(retirementStep(changed, known, NOW)).toEqual({ kind: 'change' });
    }
    // The version answers again.
    expect(
      retirementStep(dates('2026-02-01', '2031-01-02'), known, new Date('2031-01-01')),
    ).toEqual({ kind: 'change' });
  });

  it('may not move the end to less than twelve months after the announcement', () => {
    expect(retirementStep(dates('2026-01-01', '2027-01-10'), known, NOW)).toEqual({
      kind: 'refuse',
      why: 'API_V1_SUNSET_DATE: must be 2027-01-11 or later, twelve months after the retirement of v1 was announced on 2026-01-10.',
    });
    expect(retirementStep(dates('2026-01-01', '2027-01-11'), known, NOW).kind).toBe('change');
  });

  it.each([
    ['an earlier end', known],
    ['a first end', announced('2020-01-01', '2020-01-01')],
  ])('is told of %s 30 days ahead', (_what, standing) => {
    const later = new Date('2027-05-01T12:00:00Z');
    expect(retirementStep(dates('2020-01-01', '2027-05-31'), standing, later)).toEqual({
      kind: 'refuse',
      why: 'API_V1_SUNSET_DATE: must be 2027-06-01 or later, because a date that was not announced yet, or is earlier than announced, is told 30 days ahead.',
    });
    expect(retirementStep(dates('2020-01-01', '2027-06-01'), standing, later).kind).toBe('change');
  });

  it('says what to do when the dates are missing', () => {
    expect(retirementStep(null, known, NOW)).toEqual({
      kind: 'refuse',
      why: 'API_V1_DEPRECATION_DATE: v1 was announced on 2026-01-10 as deprecated from 2026-02-01 and retired from 2028-02-01, so set these dates again, or withdraw them with npm run cli -- retirement:withdraw.',
    });
    expect(retirementStep(null, undefined, NOW)).toEqual({ kind: 'none' });
  });
});

it('twelve months end on the same day of the next year, or the day after a leap day', () => {
  expect(earliestSunset(new Date('2027-02-01T12:00:00Z'))).toEqual(
    new Date('2028-02-01T12:00:00Z'),
  );
  expect(earliestSunset(new Date('2028-02-29'))).toEqual(new Date('2029-03-01'));
});

it('dates are shown as days, and other moments whole', () => {
  const shown = ['2028-02-01', '2028-02-01T12:30:00Z', '2028-02-01T00:00:00.500Z'].map((text) =>
    shownDate(new Date(text)),
  );
  expect(shown).toEqual(['2028-02-01', '2028-02-01T12:30:00Z', '2028-02-01T00:00:00.500Z']);
});
