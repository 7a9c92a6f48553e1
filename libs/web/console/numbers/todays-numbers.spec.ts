import { expect, it } from '@jest/globals';
import { NumbersFormat } from './numbers-page.js';
import { buildTodaysTiles } from './todays-numbers.service.js';

const counts = (visits: number, imported_customers = 0) => ({
  visits,
  stamps: 2 * visits,
  redemptions: 1,
  new_customers: visits - 1,
  imported_customers,
});
const day = {
  day: '2026-11-27',
  hour: 14,
  time_zone: 'Europe/Berlin',
  today: counts(5),
  before: { untilHour: counts(4), all: counts(30) },
};

it('compares each number with last week up to the last full hour', () => {
  expect(
    buildTodaysTiles(day, new NumbersFormat('en')).map(({ label, value, note }) => [
      label,
      value,
      note,
    ]),
  ).toEqual([
    ['Visits', '5', 'Last Friday by 14:00: 4 (all day: 30)'],
    ['Stamps', '10', 'Last Friday by 14:00: 8 (all day: 60)'],
    ['Rewards redeemed', '1', 'Last Friday: 1'],
    ['New customers', '4', 'Last Friday by 14:00: 3 (all day: 29)'],
  ]);
});

it('tells those whom an import added from new customers', () => {
  const [tile] = buildTodaysTiles({ ...day, today: counts(1, 60) }, new NumbersFormat('de')).slice(
    -1,
  );
  expect(tile).toEqual({
    label: 'Neue Kunden',
    value: '0',
    note: '+ 60 importiert. Letzten Freitag bis 14 Uhr: 3 (am ganzen Tag: 29)',
  });
});

it('compares with the whole day in the first hour', () => {
  const [visits] = buildTodaysTiles({ ...day, hour: 0 }, new NumbersFormat('en'));
  expect(visits?.note).toBe('Last Friday: 30');
});
