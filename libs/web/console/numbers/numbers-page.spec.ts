import { describe, expect, it } from '@jest/globals';
import {
  buildChart,
  buildCustomersChart,
  buildHeat,
  buildTable,
  NumbersFormat,
} from './numbers-page.js';

const format = new NumbersFormat('de');
const interval = (start: string, stamps: number) => ({
  start,
  stamps,
  redemptions: 1,
  new_customers: 2,
  active_customers: 3,
  returning_customers: 1,
});
const series = [interval('2026-03-01', 1_200), interval('2026-03-02', 34)];

describe('a chart', () => {
  it('says in words what it shows', () => {
    const period = { all: series, length: 2 };
    const chart = buildChart('Stempel', period, ({ stamps }) => stamps, 'day', format);
    expect(chart.bars.map(({ text }) => text)).toEqual(['So., 1. März: 1.200', 'Mo., 2. März: 34']);
    expect(chart).toMatchObject({
      line: '',
      max: 1_200,
      total: 'insgesamt 1.234',
      summary: 'Stempel: insgesamt 1.234, die meisten (1.200) am So., 1. März',
      labels: ['1. März', '2. März'],
    });
  });

  it('compares with the period before', () => {
    const period = { all: series, length: 1 };
    const chart = buildChart('Stempel', period, ({ stamps }) => stamps, 'day', format);
    expect(chart).toMatchObject({
      max: 34,
      line: '0.5,0',
      total: 'insgesamt 34, zuvor 1.200',
      bars: [{ text: 'Mo., 2. März: 34 (zuvor 1.200)' }],
    });
  });

  it('tells those whom an import added from the period before', () => {
    const period = { all: series, length: 1, imported: 7 };
    const chart = buildChart('Kunden', period, ({ stamps }) => stamps, 'day', format);
    expect(chart.total).toBe('insgesamt 34 (+ 7 importiert), zuvor 1.200');
  });

  it('says that nothing happened', () => {
    const chart = buildChart('Stempel', { all: series, length: 2 }, () => 0, 'day', format);
    expect([chart.summary, chart.peak]).toEqual(['Stempel: keine', '']);
  });
});

it('a chart of customers says how many come in a week that is over', () => {
  const weeks = [200, 181, 7].map((count) => ({
    ...interval('2026-03-02', 0),
    active_customers: count,
  }));
  const { total, summary } = buildCustomersChart(weeks, format);
  expect(total).toBe('im Schnitt 191 pro Woche');
  expect(summary).toBe('Kunden: im Schnitt 191 pro Woche, die meisten (200) am 2. März');
});

it('the table has the latest day first', () => {
  expect(buildTable(series, 'day', format).rows[0]).toEqual([
    'Mo., 2. März',
    '34',
    '1',
    '2',
    '3',
    '1',
  ]);
});

describe('the best hours', () => {
  const quiet = Array.from({ length: 24 }, () => 0);

  it('go from the first to the last hour in which somebody came', () => {
    const byHour = Array.from({ length: 7 }, () => [...quiet]);
    byHour[5] = quiet.with(9, 10);
    byHour[0] = quiet.with(11, 1);
    const heat = buildHeat(byHour, format);
    expect(heat?.rows.map(({ hour }) => hour)).toEqual(['09 Uhr', '10 Uhr', '11 Uhr']);
    expect(heat?.rows[0]?.cells[5]).toEqual({ text: '10', level: 5 });
    expect(heat?.rows[2]?.cells[0]).toEqual({ text: '1', level: 1 });
    expect(heat?.busiest).toBe('Am meisten los: Samstag, 09 Uhr');
  });

  it('are none where nobody came', () => {
    expect(
      buildHeat(
        Array.from({ length: 7 }, () => quiet),
        format,
      ),
    ).toBeNull();
  });
});
