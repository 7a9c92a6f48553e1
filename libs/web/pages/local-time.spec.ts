import { describe, expect, it } from '@jest/globals';
import { createTimeFormats, isDay, parseLocalTime, renderLocalTime } from './local-time.js';

describe('a time of a form', () => {
  it.each([
    ['2026-01-15T09:30', 'Europe/Berlin', '2026-01-15T08:30:00.000Z'],
    ['2026-07-15T09:30', 'Europe/Berlin', '2026-07-15T07:30:00.000Z'],
    ['2026-03-29T12:00', 'Europe/Berlin', '2026-03-29T10:00:00.000Z'],
    ['2026-10-25T12:00', 'Europe/Berlin', '2026-10-25T11:00:00.000Z'],
    ['2026-10-25T00:30:00', 'Europe/Berlin', '2026-10-24T22:30:00.000Z'],
    ['2026-01-15T23:59', 'Pacific/Kiritimati', '2026-01-15T09:59:00.000Z'],
    ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
  ])('%s in %s is %s', (text, timeZone, time) => {
    expect(parseLocalTime(text, timeZone)?.toISOString()).toBe(time);
    expect(renderLocalTime(new Date(time), timeZone)).toBe(text.slice(0, 16));
  });

  it.each([
    ['2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T03:30'],
    ['2026-09-06T00:00', 'America/Santiago', '2026-09-06T01:00'],
  ])('%s, which the clocks in %s skip, is %s', (text, timeZone, expected) => {
    const time = parseLocalTime(text, timeZone);
    expect(time && renderLocalTime(time, timeZone)).toBe(expected);
  });

  it.each([
    '',
    'yesterday',
    '2026-02-30T10:00',
    '2026-01-15T24:00',
    '2026-01-15T10:60',
    '2026-01-15T10:00:60',
    '2026-01-15',
  ])('is not %j', (text) => {
    expect(parseLocalTime(text, 'Europe/Berlin')).toBeUndefined();
  });

  it('knows the days of the calendar', () => {
    expect(isDay('2024-02-29')).toBe(true);
    expect(isDay('2026-02-29')).toBe(false);
    expect(isDay('29.02.2024')).toBe(false);
  });

  it('is shown in the language of the reader and the time zone of the store', () => {
    const { day, minute } = createTimeFormats('de', 'Europe/Berlin');
    expect(day(new Date('2026-01-15T23:30:00Z'))).toBe('16.01.2026');
    expect(minute(new Date('2026-01-15T23:30:00Z'))).toBe('16.01.2026, 00:30');
    const english = createTimeFormats('en', 'Europe/Berlin');
    expect(english.minute(new Date('2026-01-15T20:30:00Z'))).toBe('15 Jan 2026, 21:30');
  });
});
