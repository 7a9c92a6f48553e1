import { getTranslations, toDateLocale, type Translations } from '#translations/translations.js';
import { drawBars, type BarPaths } from './bar-chart.js';

/** The numbers of a day, week or month. */
export type Interval = {
  start: string;
  stamps: number;
  redemptions: number;
  new_customers: number;
  active_customers: number;
  returning_customers: number;
};

export type Kind = 'day' | 'week' | 'month';

export type Period = 'days' | 'weeks' | 'months';

/** Says how far back each period goes, and what its bars stand for. */
export const PERIODS: Record<Period, { kind: Kind; days: number }> = {
  days: { kind: 'day', days: 30 },
  weeks: { kind: 'week', days: 11 * 7 },
  months: { kind: 'month', days: 335 },
};

/** Says how far back the period before one goes, with an interval to spare, since a period is extended to whole ones. */
export const DAYS_WITH_PERIOD_BEFORE: Record<Period, number> = {
  days: 63,
  weeks: 25 * 7,
  months: 800,
};

export type Tile = { label: string; value: string; note: string };

export type Chart = Omit<BarPaths, 'bars'> & {
  /** The bars with what each stands for. */
  bars: { text: string; paths: string[] }[];
  title: string;
  total: string;
  /** The label of the highest bar. */
  peak: string;
  summary: string;
  /** Of the first, the middle and the last bar. */
  labels: string[];
};

export type Table = { head: string[]; rows: string[][] };

/** Hours down, weekdays across. @property level 0 to 5 */
export type Heat = {
  weekdays: { short: string; long: string }[];
  rows: { hour: string; cells: { text: string; level: number }[] }[];
  busiest: string;
};

export type Group = {
  name: string;
  note: string;
  /** The path of the same page for this one alone; null where it is one already. */
  path: string | null;
  cells: string[];
  /** Of the largest, in percent. */
  share: number;
};

/** Formats numbers and dates of a page in its language. */
export class NumbersFormat {
  readonly t: Translations['numbers'];
  readonly words: Translations['words'];
  private readonly numbers: Intl.NumberFormat;

  constructor(readonly locale: string) {
    const { t } = getTranslations(locale);
    this.t = t.numbers;
    this.words = t.words;
    this.numbers = new Intl.NumberFormat(locale);
  }

  count(value: number): string {
    return this.numbers.format(value);
  }

  percent(share: number): string {
    return new Intl.NumberFormat(this.locale, { style: 'percent' }).format(share);
  }

  /** @param day YYYY-MM-DD */
  day(day: string, kind: Kind = 'day'): string {
    const style: Intl.DateTimeFormatOptions =
      kind === 'month'
        ? { month: 'short', year: 'numeric' }
        : { day: 'numeric', month: 'short', ...(kind === 'day' && { weekday: 'short' }) };
    return this.format(day, style);
  }

  /** Formats a day as the label of a bar, where there is no room. */
  label(day: string, kind: Kind): string {
    return this.format(
      day,
      kind === 'month' ? { month: 'short' } : { day: 'numeric', month: 'short' },
    );
  }

  weekday(day: string, length: 'long' | 'short' = 'long'): string {
    return this.format(day, { weekday: length });
  }

  hour(hour: number): string {
    return new Intl.DateTimeFormat(toDateLocale(this.locale), {
      hour: 'numeric',
      // Languages with a word for it, such as "09 Uhr", need no minutes.
      ...(this.locale === 'en' && { minute: '2-digit' }),
      timeZone: 'UTC',
    }).format(Date.UTC(2026, 0, 1, hour));
  }

  private format(day: string, options: Intl.DateTimeFormatOptions): string {
    return new Intl.DateTimeFormat(toDateLocale(this.locale), {
      ...options,
      timeZone: 'UTC',
    }).format(Date.parse(`${day}T00:00:00Z`));
  }
}

/**
 * Builds a chart of one number of each interval.
 * @param all the intervals of a period, behind those of the period before, of which there may be too many or none
 * @param length of the period
 * @param imported how many an import has added in the period, who are not among them
 */
export function buildChart(
  title: string,
  { all, length, imported = 0 }: { all: Interval[]; length: number; imported?: number },
  value: (interval: Interval) => number,
  kind: Kind,
  format: NumbersFormat,
): Chart {
  const series = all.slice(-length);
  const values = series.map(value);
  const before = all.slice(-2 * length, -length).map(value);
  const bars = drawBars({ values: [values], before });
  const { t } = format;
  const own = t.total({ count: sum(values) });
  const withImported = imported === 0 ? own : `${own} (${t.imported({ count: imported })})`;
  const total =
    bars.line === '' ? withImported : t.totalBefore({ total: withImported, before: sum(before) });
  return describeChart(title, total, bars, series, values, before, kind, format);
}

/**
 * Builds a chart of the customers of each week: those who had been here before below the others. Whoever came in two
 * weeks is in both, so that their sum is no number of people: it says the average of the weeks that are over.
 */
export function buildCustomersChart(series: Interval[], format: NumbersFormat): Chart {
  const returning = series.map(({ returning_customers: count }) => count);
  const all = series.map(({ active_customers: count }) => count);
  const first = all.map((count, i) => count - (returning[i] ?? 0));
  const bars = drawBars({ values: [returning, first], before: [] });
  const over = all.length > 1 ? all.slice(0, -1) : all;
  const average = format.t.weekly({ count: Math.round(sum(over) / Math.max(1, over.length)) });
  return describeChart(format.words.customers, average, bars, series, all, [], 'week', format);
}

function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

function describeChart(
  title: string,
  total: string,
  { bars, ...paths }: BarPaths,
  series: Interval[],
  values: number[],
  before: number[],
  kind: Kind,
  format: NumbersFormat,
): Chart {
  const { t } = format;
  const { max } = paths;
  const peakStart = series[values.indexOf(max)]?.start;
  const describe = (i: number, start: string) => {
    const [when, count] = [format.day(start, kind), values[i] ?? 0];
    return paths.line === ''
      ? t.bar({ when, count })
      : t.barBefore({ when, count, before: before[i] ?? 0 });
  };
  const places = [0, Math.floor((series.length - 1) / 2), series.length - 1];
  return {
    ...paths,
    bars: series.map(({ start }, i) => ({ text: describe(i, start), paths: bars[i] ?? [] })),
    title,
    total,
    peak: max === 0 ? '' : t.max({ count: max }),
    summary:
      max === 0 || peakStart === undefined
        ? t.chartEmpty({ what: title })
        : t.chart({ what: title, total, max, when: format.day(peakStart, kind) }),
    labels: [...new Set(places)].map((place) =>
      format.label(series[place]?.start ?? '2026-01-01', kind),
    ),
  };
}

export function buildTable(series: Interval[], kind: Kind, format: NumbersFormat): Table {
  const { t, words } = format;
  return {
    head: [t[kind], words.stamps, t.redemptions, t.newCustomers, words.customers, t.cameBefore],
    rows: series
      .toReversed()
      .map((interval) => [
        format.day(interval.start, kind),
        format.count(interval.stamps),
        format.count(interval.redemptions),
        format.count(interval.new_customers),
        format.count(interval.active_customers),
        format.count(interval.returning_customers),
      ]),
  };
}

/** Builds the table of the customers of each week. */
export function buildCustomersTable(series: Interval[], format: NumbersFormat): Table {
  const { t, words } = format;
  return {
    head: [t.week, words.customers, t.cameBefore],
    rows: series
      .toReversed()
      .map(({ start, active_customers: all, returning_customers: returning }) => [
        format.day(start, 'week'),
        format.count(all),
        format.count(returning),
      ]),
  };
}

const LEVELS = 5;
/** Any Monday, from which the names of weekdays are formatted. */
const MONDAY = Date.parse('2026-01-05T00:00:00Z');
const DAY_MS = 24 * 60 * 60_000;

/** Builds the table of visits by hour and weekday, from the first to the last hour in which somebody came. */
export function buildHeat(byHour: number[][], format: NumbersFormat): Heat | null {
  const max = Math.max(...byHour.flat());
  if (max === 0) return null;
  const isBusy = (hour: number) => byHour.some((hours) => (hours[hour] ?? 0) > 0);
  const hours = Array.from({ length: 24 }, (_, hour) => hour);
  const [first = 0, last = 23] = [hours.find(isBusy), hours.findLast(isBusy)];
  const days = byHour.map((_, i) => new Date(MONDAY + i * DAY_MS).toISOString().slice(0, 10));
  const busiestDay = byHour.findIndex((ofDay) => ofDay.includes(max));
  return {
    weekdays: days.map((day) => ({
      short: format.weekday(day, 'short'),
      long: format.weekday(day),
    })),
    rows: hours.slice(first, last + 1).map((hour) => ({
      hour: format.hour(hour),
      cells: byHour.map((ofDay) => {
        const count = ofDay[hour] ?? 0;
        return { text: format.count(count), level: Math.ceil((count / max) * LEVELS) };
      }),
    })),
    busiest: format.t.busiest({
      weekday: format.weekday(days[busiestDay] ?? ''),
      hour: format.hour(byHour[busiestDay]?.indexOf(max) ?? 0),
    }),
  };
}
