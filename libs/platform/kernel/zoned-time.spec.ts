import { describe, expect, it } from '@jest/globals';
import { sample } from '../../../test/support/jest/sample.js';
import {
  EARLIEST_TIME,
  LATEST_TIME,
  findLocalTime,
  findMomentOfDay,
  isCalendarDay,
  renderZonedTime,
} from './zoned-time.js';

const ZONES = [...Intl.supportedValuesOf('timeZone'), 'UTC', 'Etc/GMT-14', 'Etc/GMT+12'];
const yearsAt = (at: number) =>
  ZONES.map((zone) =>
    Number(renderZonedTime(new Date(at).toISOString(), zone).split(/(?<=.)-/)[0]),
  );

describe('renderZonedTime', () => {
  it.each([
    ['2027-01-31T22:59:59Z', 'Europe/Berlin', '2027-01-31T23:59:59+01:00'],
    ['2027-07-31T21:59:59Z', 'Europe/Berlin', '2027-07-31T23:59:59+02:00'],
    ['2027-07-31T12:00:00Z', 'UTC', '2027-07-31T12:00:00+00:00'],
    ['2027-01-01T00:00:00Z', 'America/New_York', '2026-12-31T19:00:00-05:00'],
    ['2027-01-01T00:00:00Z', 'Asia/Kolkata', '2027-01-01T05:30:00+05:30'],
    ['2027-01-01T05:00:00Z', 'America/New_York', '2027-01-01T00:00:00-05:00'],
    ['2027-01-01T00:00:00Z', 'America/St_Johns', '2026-12-31T20:30:00-03:30'],
    // Local mean times: +00:53:28, -00:01:15, -15:56:08, +15:13:42.
    ['1800-01-01T00:00:00Z', 'Europe/Berlin', '1800-01-01T00:53:00+00:53'],
    ['1800-01-01T00:00:00Z', 'Europe/London', '1799-12-31T23:58:00-00:02'],
    ['1800-01-02T00:01:14Z', 'Europe/London', '1800-01-01T23:59:14-00:02'],
    ['0001-01-01T16:00:00Z', 'Asia/Manila', '0001-01-01T00:03:00-15:57'],
    ['1800-01-01T00:00:00Z', 'America/Metlakatla', '1800-01-01T15:13:00+15:13'],
    ['9999-12-31T09:59:59Z', 'Pacific/Kiritimati', '9999-12-31T23:59:59+14:00'],
  ])('renders %s in %s as %s', (time, zone, expected) => {
    expect(renderZonedTime(time, zone)).toBe(expected);
    expect(new Date(renderZonedTime(time, zone))).toEqual(new Date(time));
  });
});

describe('EARLIEST_TIME and LATEST_TIME', () => {
  it('are in the years 1 to 9999 in every zone, and the moments beyond are not', () => {
    const first = yearsAt(EARLIEST_TIME);
    expect([Math.min(...first), Math.max(...first)]).toEqual([1, 1]);
    const last = yearsAt(LATEST_TIME);
    expect([Math.min(...last), Math.max(...last)]).toEqual([9999, 9999]);
    expect(yearsAt(EARLIEST_TIME - 1)).toContain(0);
    expect(yearsAt(LATEST_TIME + 1)).toContain(10_000);
  });
});

describe('findLocalTime', () => {
  it.each([
    ['2026-01-15T09:30', 'Europe/Berlin', '2026-01-15T09:30:00+01:00'],
    ['2026-07-15T09:30', 'Asia/Kolkata', '2026-07-15T09:30:00+05:30'],
    ['2026-07-15T23:59', 'Pacific/Kiritimati', '2026-07-15T23:59:00+14:00'],
    ['2026-07-15T00:00', 'Pacific/Pago_Pago', '2026-07-15T00:00:00-11:00'],
    // Times that the clocks skip, and those at the edges of the gap.
    ['2026-03-29T01:59', 'Europe/Berlin', '2026-03-29T01:59:00+01:00'],
    ['2026-03-29T02:00', 'Europe/Berlin', '2026-03-29T03:00:00+02:00'],
    ['2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T03:30:00+02:00'],
    ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T03:00:00+02:00'],
    ['2026-09-06T00:00', 'America/Santiago', '2026-09-06T01:00:00-03:00'],
    ['2026-09-06T00:59', 'America/Santiago', '2026-09-06T01:59:00-03:00'],
    ['2018-11-04T00:30', 'America/Sao_Paulo', '2018-11-04T01:30:00-02:00'],
    ['2026-03-08T02:30', 'America/St_Johns', '2026-03-08T03:30:00-02:30'],
    ['2026-10-04T02:15', 'Australia/Lord_Howe', '2026-10-04T02:45:00+11:00'],
    ['2026-03-08T02:30', 'America/New_York', '2026-03-08T03:30:00-04:00'],
    ['2026-03-22T02:30', 'Africa/Casablanca', '2026-03-22T03:30:00+01:00'],
    ['2011-12-30T12:00', 'Pacific/Apia', '2011-12-31T12:00:00+14:00'],
    ['2011-12-29T23:59', 'Pacific/Apia', '2011-12-29T23:59:00-10:00'],
    ['2011-12-31T00:00', 'Pacific/Apia', '2011-12-31T00:00:00+14:00'],
    // Times that come twice: the first.
    ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T02:30:00+02:00'],
    ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T03:00:00+01:00'],
    ['2026-04-05T01:45', 'Australia/Lord_Howe', '2026-04-05T01:45:00+11:00'],
    ['2026-04-04T23:30', 'America/Santiago', '2026-04-04T23:30:00-03:00'],
    ['2026-11-01T01:30', 'America/St_Johns', '2026-11-01T01:30:00-02:30'],
    ['2026-11-01T00:30', 'America/Havana', '2026-11-01T00:30:00-04:00'],
    ['2026-02-15T02:30', 'Africa/Casablanca', '2026-02-15T02:30:00+01:00'],
  ])('reads %s in %s as %s', (clock, zone, expected) => {
    const at = findLocalTime(Date.parse(`${clock}Z`), zone);
    expect(renderZonedTime(new Date(at).toISOString(), zone)).toBe(expected);
  });

  it('reads what the clock shows in every zone, or later by what it skips', () => {
    for (const zone of sample(ZONES, 23)) {
      for (let hour = 0; hour < 365 * 24; hour += 61) {
        const clock = Date.UTC(2026, 0, 1, hour, 30);
        const at = findLocalTime(clock, zone);
        const local = Date.parse(
          `${renderZonedTime(new Date(at).toISOString(), zone).slice(0, 19)}Z`,
        );
        expect([0, 30, 60, 120]).toContain((local - clock) / 60_000);
      }
    }
  });
});

describe('findMomentOfDay', () => {
  it.each([
    ['2026-12-31', 'UTC', '2026-12-31T00:00:00.000Z', '2026-12-31T23:59:59.999Z'],
    ['2026-12-31', 'America/Los_Angeles', '2026-12-31T08:00:00.000Z', '2027-01-01T07:59:59.999Z'],
    ['2026-12-31', 'Pacific/Kiritimati', '2026-12-30T10:00:00.000Z', '2026-12-31T09:59:59.999Z'],
    ['2026-12-31', 'Asia/Kathmandu', '2026-12-30T18:15:00.000Z', '2026-12-31T18:14:59.999Z'],
    ['2026-12-31', 'America/St_Johns', '2026-12-31T03:30:00.000Z', '2027-01-01T03:29:59.999Z'],
    ['2028-02-29', 'Europe/Berlin', '2028-02-28T23:00:00.000Z', '2028-02-29T22:59:59.999Z'],
    // Days of 23 and 25 hours.
    ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
    ['2026-10-25', 'Europe/Berlin', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
    // Half an hour of daylight saving time.
    ['2026-04-05', 'Australia/Lord_Howe', '2026-04-04T13:00:00.000Z', '2026-04-05T13:29:59.999Z'],
    // Midnight is skipped: on the first and the third day, and on the one after the second.
    ['2018-11-04', 'America/Sao_Paulo', '2018-11-04T03:00:00.000Z', '2018-11-05T01:59:59.999Z'],
    ['2018-11-03', 'America/Sao_Paulo', '2018-11-03T03:00:00.000Z', '2018-11-04T02:59:59.999Z'],
    ['2026-04-24', 'Africa/Cairo', '2026-04-23T22:00:00.000Z', '2026-04-24T20:59:59.999Z'],
    // The last hour of the day comes twice.
    ['2018-02-17', 'America/Sao_Paulo', '2018-02-17T02:00:00.000Z', '2018-02-18T02:59:59.999Z'],
    // The first hour of the day comes twice.
    ['2026-11-01', 'America/Havana', '2026-11-01T04:00:00.000Z', '2026-11-02T04:59:59.999Z'],
    ['2026-10-31', 'America/Havana', '2026-10-31T04:00:00.000Z', '2026-11-01T03:59:59.999Z'],
    // One minute after midnight the clocks went back into the day before.
    ['2010-11-06', 'America/St_Johns', '2010-11-06T02:30:00.000Z', '2010-11-07T03:29:59.999Z'],
    ['2010-11-07', 'America/St_Johns', '2010-11-07T02:30:00.000Z', '2010-11-08T03:29:59.999Z'],
    // Days that were skipped as a whole, when a country crossed the date line, and those around them.
    ['2011-12-30', 'Pacific/Apia', '2011-12-30T10:00:00.000Z', '2011-12-30T09:59:59.999Z'],
    ['2011-12-29', 'Pacific/Apia', '2011-12-29T10:00:00.000Z', '2011-12-30T09:59:59.999Z'],
    ['2011-12-31', 'Pacific/Apia', '2011-12-30T10:00:00.000Z', '2011-12-31T09:59:59.999Z'],
    ['1994-12-31', 'Pacific/Kiritimati', '1994-12-31T10:00:00.000Z', '1994-12-31T09:59:59.999Z'],
    // A day that came twice.
    ['1892-07-04', 'Pacific/Apia', '1892-07-03T11:26:56.000Z', '1892-07-05T11:26:55.999Z'],
    ['1800-01-01', 'Europe/Berlin', '1799-12-31T23:06:32.000Z', '1800-01-01T23:06:31.999Z'],
    ['1800-01-01', 'Europe/London', '1800-01-01T00:01:15.000Z', '1800-01-02T00:01:14.999Z'],
    ['0001-01-01', 'Asia/Manila', '0001-01-01T15:56:08.000Z', '0001-01-02T15:56:07.999Z'],
    ['9999-12-31', 'Pacific/Kiritimati', '9999-12-30T10:00:00.000Z', '9999-12-31T09:59:59.999Z'],
  ])('finds that %s in %s is from %s to %s', (day, zone, start, end) => {
    expect(new Date(findMomentOfDay(day, 'start', zone)).toISOString()).toBe(start);
    expect(new Date(findMomentOfDay(day, 'end', zone)).toISOString()).toBe(end);
  });

  it('finds the first and the last moment of a day, and the start of the next, in every zone', () => {
    for (const zone of sample(ZONES, 23)) {
      for (const day of ['2026-03-28', '2026-12-31', '2027-02-28', '2028-02-29']) {
        const end = findMomentOfDay(day, 'end', zone);
        expect(findMomentOfDay(day, 'next', zone)).toBe(end + 1);
        expect(renderZonedTime(new Date(end).toISOString(), zone).slice(0, 10)).toBe(day);
        const start = findMomentOfDay(day, 'start', zone);
        expect(renderZonedTime(new Date(start).toISOString(), zone).slice(0, 10)).toBe(day);
        expect(renderZonedTime(new Date(start - 1).toISOString(), zone).slice(0, 10)).not.toBe(day);
      }
    }
  });
});

describe('isCalendarDay', () => {
  it('knows the days of the calendar', () => {
    expect(isCalendarDay('2024-02-29')).toBe(true);
    expect(isCalendarDay('2026-02-29')).toBe(false);
    expect(isCalendarDay('29.02.2024')).toBe(false);
  });
});
