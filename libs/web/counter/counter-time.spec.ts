import { describe, expect, it } from '@jest/globals';
import { formatAgo, formatWhen } from './counter-time.js';

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

describe('how long ago something was done', () => {
  it.each([
    [0, 'en', '1 second ago'],
    [59.4, 'en', '59 seconds ago'],
    [59.6, 'en', '1 minute ago'],
    [89, 'en', '1 minute ago'],
    [115, 'en', '2 minutes ago'],
    [115, 'de', 'vor 2 Minuten'],
    [115, 'fr', 'il y a 2 minutes'],
    [115, 'es', 'hace 2 minutos'],
    [115, 'nl', '2 minuten geleden'],
  ])('%d seconds are in %s: %s', (seconds, locale, text) => {
    expect(formatAgo(seconds, locale)).toBe(text);
  });
});
