import { Controller, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { EventStoreUnavailableError } from '#platform/kernel/errors.js';
import { NO_FILTER } from '#loyalty/history/history-query.js';
import { StatisticsService } from '#loyalty/statistics/statistics.service.js';
import { isAllowed } from '#identity/roles.js';
import { loadAsset } from '#web/pages/assets.js';
import { Cookies } from '#web/pages/cookies.js';
import {
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { Timeline, type TimelineLine, type TimelineReader } from '../customers/timeline.service.js';
import {
  buildChart,
  NumbersFormat,
  DAYS_WITH_PERIOD_BEFORE,
  PERIODS,
  type Chart,
  type Tile,
} from '../numbers/numbers-page.js';
import { CHART_SCRIPT, NUMBERS_STYLE } from '../numbers/numbers-style.js';
import { EVERYTHING, TodaysNumbers } from '../numbers/todays-numbers.service.js';
import { listSteps, type Step } from './steps.js';
import { StoreSetup } from './store-setup.service.js';

/** Something that waits for the user. @property page of the menu @property below what follows the path of the page */
type Waiting = { text: string; why: string; page: string; below: string };

type OverviewView = {
  /** Null: the user may not see numbers. */
  today: { tiles: Tile[]; chart: Chart; waiting: Waiting[] } | null;
  /** Of the last events. Empty: there is none, or the user may not see them. Null: the history cannot be reached. */
  latest: TimelineLine[] | null;
  /** Null: everything is set up, or the user cannot do it. */
  setup: SetupView | null;
  /** Whether there is nothing to count yet. */
  isNew: boolean;
  services: string[];
  flash: string;
  /** What a new owner has to know before they print a code; blank: nothing. */
  warning: string;
};

/**
 * @property next the steps that lead to the first stamp and are left
 * @property useful other steps that are left
 * @property left names all that is left once there are stamps; blank: before
 * @property isNew whether the store has no customer yet
 */
type SetupView = {
  next: NumberedStep[];
  useful: Step[];
  done: Step[];
  progress: string;
  value: number;
  max: number;
  left: string;
  isNew: boolean;
};

type NumberedStep = Step & { number: number };

const view = loadView<OverviewView>(import.meta.url, './views/overview.eta');
const DAY_MS = 24 * 60 * 60_000;
const HIDDEN_SETUPS = 'inkpad-hidden-setups';
const HIDDEN_SECONDS = 365 * 24 * 60 * 60;
/** So many stores fit into a cookie, with room to spare. */
const MAX_HIDDEN = 100;
const LATEST = { after: null, limit: 5, showsCustomers: true };

const STYLE = loadAsset(import.meta.url, './assets/overview.css');

/** Shows what somebody wants to know about a store who opens it, as far as their role allows. */
@Controller('app/stores/:account_id')
export class OverviewController {
  private readonly cookies: Cookies;

  constructor(
    private readonly setup: StoreSetup,
    private readonly numbers: TodaysNumbers,
    private readonly statistics: StatisticsService,
    private readonly timeline: Timeline,
    private readonly config: Config,
  ) {
    this.cookies = new Cookies(config.publicUrl);
  }

  @GetPage('store.read')
  async show(
    @Req() request: FastifyRequest,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Query('done') done: unknown,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { overview: t, console: texts } = localization.t;
    const maySeeNumbers = isAllowed(store.role, 'getStatistics');
    const maySetUp = isAllowed(store.role, 'store.settings');
    const maySeeHistory = isAllowed(store.role, 'listHistory');
    const [today, setup, latest] = await Promise.all([
      maySeeNumbers ? this.readToday(localization, store) : null,
      maySetUp ? this.readSetup(localization, userId, store) : null,
      maySeeHistory ? this.readLatest({ store, userId, localization }) : [],
    ]);
    const isOwner = store.role === 'owner';
    const isNew = setup?.isNew ?? false;
    return showPage({
      view,
      title: store.name,
      styles: [NUMBERS_STYLE, STYLE],
      scripts: [CHART_SCRIPT],
      data: {
        today,
        latest,
        setup: !isNew && this.listHidden(request).includes(String(store.id)) ? null : setup,
        isNew,
        flash: findFlashMessage(done, { saved: texts.settings.saved }),
        warning: isNew && this.config.isOnlyLocal ? localization.t.words.localOnly : '',
        services: isOwner ? this.setup.listMissingServices().map((name) => t.services[name]) : [],
      },
    });
  }

  /** Leaves out what is left to set up, for whoever uses this browser. */
  @PostForm('store.settings', 'hide_setup')
  hideSetup(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @CurrentStore() { id }: EnteredStore,
  ): PageResult {
    const ids = [String(id), ...this.listHidden(request)].slice(0, MAX_HIDDEN);
    this.cookies.set(reply, HIDDEN_SETUPS, [...new Set(ids)].join('.'), {
      maxAgeSeconds: HIDDEN_SECONDS,
    });
    return redirectTo(`/app/stores/${id}`);
  }

  /** Lists the stores whose set-up somebody hid in this browser. */
  private listHidden(request: FastifyRequest): string[] {
    return this.cookies.read(request, HIDDEN_SETUPS)?.split('.') ?? [];
  }

  private async readToday(
    localization: Localization,
    { id }: EnteredStore,
  ): Promise<OverviewView['today']> {
    const { overview: t } = localization.t;
    const format = new NumbersFormat(localization.locale);
    const now = getNow();
    const { kind, days } = PERIODS.days;
    const from = new Date(now.getTime() - DAYS_WITH_PERIOD_BEFORE.days * DAY_MS);
    const range = { ...EVERYTHING, interval: kind, from, to: null, breakdown: null };
    const [tiles, { series: all }, { messages, imports }] = await Promise.all([
      this.numbers.get(id, EVERYTHING, now, format),
      this.statistics.getOfRange(id, range, now),
      this.setup.countWaiting(id),
    ]);
    const counts: [number, 'messages' | 'imports', string, string?][] = [
      [messages, 'messages', 'messages', '/links'],
      [imports, 'imports', 'transfers'],
    ];
    return {
      tiles,
      chart: buildChart(
        format.words.stamps,
        { all, length: days + 1 },
        ({ stamps }) => stamps,
        kind,
        format,
      ),
      waiting: counts
        .filter(([count]) => count > 0)
        .map(([count, name, page, below = '']) => ({
          text: t[name]({ count }),
          why: t[`${name}Why`],
          page,
          below,
        })),
    };
  }

  /** Without the event store, the rest of the page is of use still. */
  private async readLatest(reader: TimelineReader): Promise<OverviewView['latest']> {
    try {
      return (await this.timeline.list(reader, NO_FILTER, LATEST)).lines;
    } catch (error) {
      if (error instanceof EventStoreUnavailableError) return null;
      throw error;
    }
  }

  private async readSetup(
    localization: Localization,
    userId: number,
    { id }: EnteredStore,
  ): Promise<OverviewView['setup']> {
    const { t, locale } = localization;
    const state = await this.setup.findSteps(userId, id);
    const { needed, useful } = listSteps(state, t.overview, this.config.hasWallet);
    const steps = [...needed, ...useful];
    const open = steps.filter(({ isDone }) => !isDone);
    if (open.length === 0) return null;
    const { ready, stepsLeft, progress } = t.overview;
    const next = needed
      .map((step, at) => ({ ...step, number: at + 1 }))
      .filter(({ isDone }) => !isDone);
    const max = needed.length;
    const value = max - next.length;
    const titles = new Intl.ListFormat(locale, { type: 'unit' }).format(
      open.map(({ title }) => title),
    );
    const left =
      next.length === 0
        ? ready({ steps: titles })
        : stepsLeft({ count: open.length, steps: titles });
    return {
      next,
      useful: useful.filter(({ isDone }) => !isDone),
      done: steps.filter(({ isDone }) => isDone),
      progress: progress({ done: value, all: max }),
      value,
      max,
      left: state.stamp ? left : '',
      isNew: !state.customer,
    };
  }
}
