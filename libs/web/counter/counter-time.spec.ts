import { describe, expect, it } from '@jest/globals';
import { formatWhen } from './counter-time.js';

const NOW = new Date('2026-03-01T10:00:00Z');
const format = (at: string, locale = 'en', timeZone = 'Europe/Berlin') =>
  formatWhen(new Date(at), NOW, { locale, timeZone }).replaceAll('\u202f', ' ');

describe('when something was done', () => {
  it.each([
    ['2026-03-01T09:05:00Z', 'en', '10:05'],
    ['2026-02-28T22:30:00Z', 'en', 'Yesterday, 23:30'],
    ['2026-02-28T22:30:00Z', 'de', 'Gestern, 23:30'],
    ['2026-02-28T22:30:00Z', 'fr', 'Hier, 23:30'],
    ['2026-02-28T23:30:00Z', 'en', '00:30'],
    ['2026-02-27T12:00:00Z', 'en', '27 Feb, 13:00'],
    ['2025-12-24T12:00:00Z', 'en', '24 Dec 2025, 13:00'],
  ])('%s is in %s: %s', (at, locale, text) => {
    expect(format(at, locale)).toBe(text);
  });

  it('is by the day of the store', () => {
    expect(format('2026-02-28T23:30:00Z', 'en', 'UTC')).toBe('Yesterday, 23:30');
  });
});
