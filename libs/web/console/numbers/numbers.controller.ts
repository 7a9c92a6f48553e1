import { Controller, Query } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { loadPart } from '#platform/kernel/templates.js';
import { StatisticsService } from '#loyalty/statistics/statistics.service.js';
import { CurrentStore, type EnteredStore, Localized, GetPage } from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';
import {
  buildChart,
  buildCustomersChart,
  buildCustomersTable,
  buildHeat,
  buildTable,
  NumbersFormat,
  DAYS_WITH_PERIOD_BEFORE,
  PERIODS,
  type Chart,
  type Group,
  type Heat,
  type Period,
  type Table,
  type Tile,
  type Interval,
} from './numbers-page.js';
import { CHART_SCRIPT, NUMBERS_STYLE } from './numbers-style.js';
import { RecordNames, type NamedRecord } from './record-names.service.js';
import { TodaysNumbers } from './todays-numbers.service.js';

type Choice = { text: string; path: string; isCurrent: boolean };

type NumbersView = {
  filters: { label: string; text: string; isSet: boolean; options: Choice[] }[];
  hasFilters: boolean;
  path: string;
  /** The page that a store without numbers begins with. */
  start: 'cards' | 'posters';
  tiles: Tile[];
  totals: Tile[];
  /** Null: nothing happened in the period. */
  period: {
    charts: Chart[];
    table: Table;
    customers: Chart;
    customersTable: Table;
    returning: string;
    heat: Heat | null;
    groups: { title: string; head: string; rows: Group[] }[];
  } | null;
};

loadPart('bar-chart', import.meta.url, './views/bar-chart.eta');
loadPart('number-table', import.meta.url, './views/number-table.eta');
const view = loadView<NumbersView>(import.meta.url, './views/numbers.eta');

const DAY_MS = 24 * 60 * 60_000;
const WEEKS_MS = 11 * 7 * DAY_MS;

type NumbersQuery = {
  period?: unknown;
  card_id?: unknown;
  location_id?: unknown;
  user_id?: unknown;
};

/** Narrows what the page shows; null: not by this. */
type Choices = {
  period: Period;
  cardId: number | null;
  locationId: number | null;
  userId: number | null;
};

type GroupField = 'card_id' | 'location_id' | 'user_id';

/** Shows the numbers of a store, as the operation of the statistics counts them. */
@Controller('app/stores/:account_id/numbers')
export class NumbersController {
  constructor(
    private readonly statistics: StatisticsService,
    private readonly today: TodaysNumbers,
    private readonly names: RecordNames,
  ) {}

  @GetPage('getStatistics')
  async show(
    @CurrentStore() store: EnteredStore,
    @Query() query: NumbersQuery,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { t, locale } = localization;
    const format = new NumbersFormat(locale);
    const choices = parseChoices(query);
    const now = getNow();
    const path = `/app/stores/${store.id}/numbers`;
    const [cards, locations, people, tiles, totals] = await Promise.all([
      this.names.listCards(store.id),
      this.names.listLocations(store.id),
      this.names.listPeople(store.id),
      this.today.get(store.id, choices, now, format),
      this.statistics.getRedeemable(store.id, choices.cardId),
    ]);
    const names = { card_id: cards, location_id: locations, user_id: people };
    return showPage({
      view,
      title: `${t.numbers.title} · ${store.name}`,
      styles: [NUMBERS_STYLE],
      scripts: [CHART_SCRIPT],
      data: {
        filters: buildFilters(choices, names, path, format),
        hasFilters: [choices.cardId, choices.locationId, choices.userId].some((id) => id !== null),
        path,
        start: cards.length === 0 ? 'cards' : 'posters',
        tiles,
        totals: [
          { label: t.numbers.rewardsDue, value: format.count(totals.redeemable_rewards), note: '' },
          {
            label: t.numbers.outstanding,
            value: format.count(totals.outstanding_stamps),
            note: '',
          },
        ],
        period: await this.readPeriod(store.id, choices, names, { path, now, format }),
      },
    });
  }

  private async readPeriod(
    accountId: number,
    choices: Choices,
    names: Record<GroupField, NamedRecord[]>,
    { path, now, format }: { path: string; now: Date; format: NumbersFormat },
  ): Promise<NumbersView['period']> {
    const { kind, days } = PERIODS[choices.period];
    const { cardId, locationId, userId } = choices;
    const scope = { cardId, locationId, userId, to: null, breakdown: null };
    const range = { ...scope, interval: kind, from: new Date(now.getTime() - days * DAY_MS) };
    const before = new Date(now.getTime() - DAYS_WITH_PERIOD_BEFORE[choices.period] * DAY_MS);
    const weeks = { ...scope, interval: 'week' as const, from: new Date(now.getTime() - WEEKS_MS) };
    const [numbers, { series: all }, imported, byWeek, byLocation, byCard, byUser] =
      await Promise.all([
        this.statistics.getOfRange(accountId, range, now),
        this.statistics.getOfRange(accountId, { ...range, from: before }, now),
        this.statistics.countImported(accountId, range, now),
        this.statistics.getOfRange(accountId, weeks, now),
        this.statistics.getBreakdown(accountId, { ...range, breakdown: 'location' }, now),
        this.statistics.getBreakdown(accountId, { ...range, breakdown: 'card' }, now),
        this.statistics.getBreakdown(accountId, { ...range, breakdown: 'user' }, now),
      ]);
    const { series } = numbers;
    const total = {
      visits: numbers.by_hour.flat().reduce((sum, count) => sum + count, 0),
      stamps: series.reduce((sum, { stamps }) => sum + stamps, 0),
      redemptions: series.reduce((sum, { redemptions }) => sum + redemptions, 0),
    };
    if (total.visits === 0 && series.every(({ new_customers: count }) => count === 0)) return null;
    const { t } = format;
    const latest = byWeek.series.at(-1);
    const draw = (title: string, value: (interval: Interval) => number, additions = 0) =>
      buildChart(title, { all, length: series.length, imported: additions }, value, kind, format);
    const createGroups = (field: GroupField, rows: Counts[], rest: Rest | null) =>
      buildGroups(rows, { field, records: names[field], rest, total, path, choices, format });
    return {
      charts: [
        draw(format.words.stamps, ({ stamps }) => stamps),
        draw(t.redemptions, ({ redemptions }) => redemptions),
        draw(t.newCustomers, ({ new_customers: count }) => count, imported),
      ],
      table: buildTable(series, kind, format),
      customers: buildCustomersChart(byWeek.series, format),
      customersTable: buildCustomersTable(byWeek.series, format),
      returning: latest && latest.active_customers > 0 ? describeReturning(latest, format) : '',
      heat: buildHeat(numbers.by_hour, format),
      groups: [
        createGroups('location_id', byLocation, { name: t.noLocation, note: '' }),
        createGroups('card_id', byCard, null),
        createGroups('user_id', byUser, { name: t.programs, note: t.programsWhy }),
      ].filter(({ rows }) => rows.length > 0),
    };
  }
}

type Counts = { id: number; visits: number; stamps: number; redemptions: number };

/** Names what happened for none of the records. */
type Rest = { name: string; note: string };

/** Builds the rows of a breakdown, with what is left over for none of them. */
function buildGroups(
  counts: Counts[],
  {
    field,
    records,
    rest,
    total,
    path,
    choices,
    format,
  }: {
    field: GroupField;
    records: NamedRecord[];
    rest: Rest | null;
    total: Omit<Counts, 'id'>;
    path: string;
    choices: Choices;
    format: NumbersFormat;
  },
): NonNullable<NumbersView['period']>['groups'][number] {
  const { t } = format;
  const names = new Map(records.map(({ id, name }) => [id, name]));
  const isFiltered =
    { card_id: choices.cardId, location_id: choices.locationId, user_id: choices.userId }[field] !==
    null;
  const sum = (count: (row: Counts) => number) => counts.reduce((all, row) => all + count(row), 0);
  const left: Counts = {
    id: 0,
    visits: total.visits - sum(({ visits }) => visits),
    stamps: total.stamps - sum(({ stamps }) => stamps),
    redemptions: total.redemptions - sum(({ redemptions }) => redemptions),
  };
  const all = rest && !isFiltered ? [...counts, left] : counts;
  const max = Math.max(1, ...all.map(({ visits }) => visits));
  const titles = { card_id: t.by.card, location_id: t.by.location, user_id: t.by.person };
  const heads = { card_id: format.words.card, location_id: t.location, user_id: t.person };
  return {
    title: titles[field],
    head: heads[field],
    rows: all
      .filter(({ visits, stamps, redemptions }) => visits > 0 || stamps > 0 || redemptions > 0)
      .map(({ id, visits, stamps, redemptions }) => ({
        name: id === 0 ? (rest?.name ?? '') : (names.get(id) ?? t.gone),
        note: id === 0 ? (rest?.note ?? '') : '',
        path:
          id === 0 || isFiltered
            ? null
            : toPath(path, { ...toQuery(choices), [field]: String(id) }),
        cells: [visits, stamps, redemptions].map((count) => format.count(count)),
        share: Math.round((100 * visits) / max),
      })),
  };
}

/** Builds what narrows the page, as links. What there is only one of is no choice, unless it has been chosen. */
function buildFilters(
  choices: Choices,
  names: Record<GroupField, NamedRecord[]>,
  path: string,
  { t, words }: NumbersFormat,
): NumbersView['filters'] {
  const query = toQuery(choices);
  const build = (
    name: keyof typeof query,
    label: string,
    values: [value: string, text: string][],
  ) => {
    const options = values.map(([value, text]) => ({
      text,
      path: toPath(path, { ...query, [name]: value }),
      isCurrent: query[name] === value,
    }));
    const text = options.find(({ isCurrent }) => isCurrent)?.text ?? t.gone;
    return { label, text, isSet: query[name] !== '' && name !== 'period', options };
  };
  const toValues = (records: NamedRecord[], all: string): [string, string][] => [
    ['', all],
    ...records.map(({ id, name }): [string, string] => [String(id), name]),
  ];
  return [
    build('period', t.period, Object.entries(t.periods)),
    build('location_id', t.location, toValues(names.location_id, t.all.location)),
    build('card_id', words.card, toValues(names.card_id, t.all.card)),
    build('user_id', t.person, toValues(names.user_id, t.all.person)),
  ].filter(({ isSet, options }) => isSet || options.length > 2);
}

function toQuery({
  period,
  cardId,
  locationId,
  userId,
}: Choices): Record<'period' | GroupField, string> {
  const render = (id: number | null) => (id === null ? '' : String(id));
  return {
    period,
    card_id: render(cardId),
    location_id: render(locationId),
    user_id: render(userId),
  };
}

function toPath(path: string, query: Record<string, string>): string {
  const entries = Object.entries(query).filter(([, value]) => value !== '' && value !== 'days');
  return entries.length === 0 ? path : `${path}?${new URLSearchParams(entries).toString()}`;
}

/** Parses what is to be shown. What makes no sense is left out. */
function parseChoices({ period, card_id, location_id, user_id }: NumbersQuery): Choices {
  return {
    period:
      typeof period === 'string' && Object.hasOwn(PERIODS, period) ? (period as Period) : 'days',
    cardId: parsePositiveInteger(card_id),
    locationId: parsePositiveInteger(location_id),
    userId: parsePositiveInteger(user_id),
  };
}

function describeReturning(
  { returning_customers: returning, active_customers: all }: Interval,
  format: NumbersFormat,
): string {
  return format.t.returningShare({ share: format.percent(returning / all) });
}
