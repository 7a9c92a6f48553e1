import { describe, expect, it } from '@jest/globals';
import { findAudibleTime, parseTimeOfDay, type QuietHours } from './quiet-hours.js';

const NIGHT = { from: '21:00', to: '08:00' };

const find = (time: string, quiet: QuietHours | null = NIGHT, timeZone = 'Europe/Berlin') =>
  new Date(findAudibleTime(Date.parse(time), quiet, timeZone)).toISOString();

describe('findAudibleTime', () => {
  it('leaves a time outside the quiet hours as it is', () => {
    expect(find('2026-07-01T12:34:56.789Z')).toBe('2026-07-01T12:34:56.789Z');
    expect(find('2026-07-01T02:00:00.000Z', null)).toBe('2026-07-01T02:00:00.000Z');
  });

  it('moves a time within them to their end, by the clock of the store', () => {
    expect(find('2026-07-01T20:30:15.000Z')).toBe('2026-07-02T06:00:00.000Z');
    expect(find('2026-07-02T03:00:00.000Z')).toBe('2026-07-02T06:00:00.000Z');
    expect(find('2026-07-02T03:00:00.000Z', NIGHT, 'America/New_York')).toBe(
      '2026-07-02T12:00:00.000Z',
    );
  });

  it('begins with the first minute and ends with the last', () => {
    expect(find('2026-07-01T19:00:00.000Z')).toBe('2026-07-02T06:00:00.000Z');
    expect(find('2026-07-01T18:59:59.999Z')).toBe('2026-07-01T18:59:59.999Z');
    expect(find('2026-07-02T06:00:00.000Z')).toBe('2026-07-02T06:00:00.000Z');
  });

  it('takes quiet hours within a day', () => {
    const noon = { from: '12:00', to: '14:30' };
    expect(find('2026-07-01T10:10:00.000Z', noon)).toBe('2026-07-01T12:30:00.000Z');
    expect(find('2026-07-01T13:00:00.000Z', noon)).toBe('2026-07-01T13:00:00.000Z');
  });

  it('ends at the same time of day when the clocks change in the night', () => {
    // The night to the 29th of March has 23 hours, the one to the 25th of October 25.
    expect(find('2026-03-28T22:00:00.000Z')).toBe('2026-03-29T06:00:00.000Z');
    expect(find('2026-10-24T22:00:00.000Z')).toBe('2026-10-25T07:00:00.000Z');
  });

  it('ends with the hour that the clocks skip when its end is in it', () => {
    const night = { from: '21:00', to: '02:30' };
    expect(find('2026-03-28T22:00:00.000Z', night)).toBe('2026-03-29T01:00:00.000Z');
    expect(find('2026-03-29T00:30:00.000Z', night)).toBe('2026-03-29T01:00:00.000Z');
    expect(find('2026-03-29T00:45:30.000Z', night)).toBe('2026-03-29T01:00:00.000Z');
  });
});

describe('parseTimeOfDay', () => {
  it('reads hours and minutes, and nothing else', () => {
    expect(['00:00', '08:30', '23:59'].map(parseTimeOfDay)).toEqual([0, 510, 1439]);
    expect(['24:00', '8:30', '08:60', '08:30:00', ''].map(parseTimeOfDay)).toEqual(
      Array.from({ length: 5 }, () => undefined),
    );
  });
});
