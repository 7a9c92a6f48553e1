import { describe, expect, it } from '@jest/globals';
import { zonedTime } from './zoned-time.js';

describe('a time with its offset', () => {
  it.each([
    ['2027-01-31T22:59:59Z', 'Europe/Berlin', '2027-01-31T23:59:59+01:00'],
    ['2027-07-31T21:59:59Z', 'Europe/Berlin', '2027-07-31T23:59:59+02:00'],
    ['2027-07-31T12:00:00Z', 'UTC', '2027-07-31T12:00:00+00:00'],
    ['2027-01-01T00:00:00Z', 'America/New_York', '2026-12-31T19:00:00-05:00'],
    ['2027-01-01T00:00:00Z', 'Asia/Kolkata', '2027-01-01T05:30:00+05:30'],
    ['2027-01-01T05:00:00Z', 'America/New_York', '2027-01-01T00:00:00-05:00'],
  ])('%s in %s is %s', (time, zone, expected) => {
    expect(zonedTime(time, zone)).toBe(expected);
    expect(new Date(zonedTime(time, zone))).toEqual(new Date(time));
  });
});
