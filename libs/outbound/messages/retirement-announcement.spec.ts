import { describe, expect, it } from '@jest/globals';
import {
  findDueOccasion,
  renderRetirementMail,
  type AffectedUser,
  type Retirement,
} from './retirement-announcement.js';

const SUNSET = new Date('2028-02-01T00:00:00Z');
const NOTIFIED_AT = new Date('2026-12-01T00:00:00Z');
const MONTH_BEFORE = '2028-01-02T00:00:00Z';

const retirement = (changes: Partial<Retirement> = {}): Retirement => ({
  id: 1,
  version: 'v1',
  deprecatedAt: new Date('2027-01-01T00:00:00Z'),
  sunsetAt: SUNSET,
  notifiedAt: null,
  sunsetNotifiedAt: null,
  remindedSunsetAt: null,
  ...changes,
});
const announced = { notifiedAt: NOTIFIED_AT, sunsetNotifiedAt: NOTIFIED_AT };

describe('findDueOccasion', () => {
  it.each([
    ['before any announcement', {}, '2026-12-01T00:00:00Z', 'announced'],
    [
      'before any announcement, without a sunset date',
      { sunsetAt: null },
      '2026-12-01T00:00:00Z',
      'announced',
    ],
    ['after the announcement', announced, '2026-12-02T00:00:00Z', undefined],
    [
      'after the announcement, without a sunset date',
      { sunsetAt: null, notifiedAt: NOTIFIED_AT },
      '2036-12-02',
      undefined,
    ],
    [
      'when the sunset date is set after the announcement',
      { notifiedAt: NOTIFIED_AT },
      '2026-12-02T00:00:00Z',
      'sunset',
    ],
    ['a moment before the last 30 days', announced, '2028-01-01T23:59:59.999Z', undefined],
    ['in the last 30 days', announced, MONTH_BEFORE, 'reminder'],
    ['after the reminder', { ...announced, remindedSunsetAt: SUNSET }, MONTH_BEFORE, undefined],
    [
      'after a reminder of another date',
      { ...announced, remindedSunsetAt: NOTIFIED_AT },
      MONTH_BEFORE,
      'reminder',
    ],
    ['in the last 30 days, without an announcement', {}, '2028-01-31T00:00:00Z', 'reminder'],
    ['after the sunset', announced, '2028-02-01T00:00:00Z', undefined],
  ])('returns what is due %s', (_when, changes, now, occasion) => {
    expect(findDueOccasion(retirement(changes), new Date(now))).toBe(occasion);
  });
});

describe('renderRetirementMail', () => {
  const user = (changes: Partial<AffectedUser> = {}): AffectedUser => ({
    email: 'me@shop.example',
    name: 'Ada',
    locale: 'en',
    tokens: [
      { name: 'till 1', usedAt: new Date('2026-11-20T22:00:00Z') },
      { name: 'books\r\nBcc: everybody', usedAt: new Date('2026-10-03T10:00:00Z') },
    ],
    ...changes,
  });

  it('says which version ends when, which tokens use it and what to do', () => {
    expect(
      renderRetirementMail('announced', retirement(), user(), 'https://cards.example'),
    ).toEqual({
      to: 'me@shop.example',
      subject: 'cards.example: version v1 of the API ends on 1 February 2028',
      text: `Hello Ada,

Version v1 of the API at https://cards.example is being retired.

Deprecated from: 1 January 2027
Ends on: 1 February 2028, 00:00 UTC

From then on every request to https://cards.example/api/v1 is refused with 410 and the code
version_sunset.

API tokens of yours have used it in the last 90 days:
- till 1, last on 20 November 2026
- books Bcc: everybody, last on 3 October 2026

What to do:
- Find the programs that use these tokens, and move them to a newer version in time.
- How versions end, and where things stand: https://cards.example/docs/versioning
- Your tokens: https://cards.example/app
`,
    });
  });

  it('has its own subject for a reminder, and without a sunset date', () => {
    const renderSubject = (occasion: 'announced' | 'reminder', sunsetAt: Date | null) =>
      renderRetirementMail(occasion, retirement({ sunsetAt }), user(), 'https://cards.example')
        .subject;
    expect(renderSubject('reminder', SUNSET)).toBe(
      'Reminder: cards.example: version v1 of the API ends on 1 February 2028',
    );
    expect(renderSubject('announced', null)).toBe(
      'cards.example: version v1 of the API is being retired',
    );
  });

  it('is in German for a user with a German store', () => {
    const { subject, text } = renderRetirementMail(
      'reminder',
      retirement(),
      user({ locale: 'de-AT' }),
      'https://cards.example',
    );
    expect(subject).toBe('Erinnerung: cards.example: Version v1 der API endet am 1. Februar 2028');
    expect(text).toContain('- till 1, zuletzt am 20. November 2026\n');
    expect(text).toContain('Endet am: 1. Februar 2028, 00:00 UTC\n');
  });

  it('names at most ten tokens', () => {
    const tokens = Array.from({ length: 11 }, (_, i) => ({
      name: `till ${i}`,
      usedAt: NOTIFIED_AT,
    }));
    const { text } = renderRetirementMail(
      'announced',
      retirement(),
      user({ tokens, locale: null }),
      'https://cards.example',
    );
    expect(text).toContain('- till 9, last on 1 December 2026\n- and others\n');
    expect(text).not.toContain('till 10');
  });
});
