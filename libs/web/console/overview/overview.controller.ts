import { Controller } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { isAllowed } from '#identity/roles.js';
import { loadAsset } from '#web/pages/assets.js';
import {
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { NumbersFormat, type Tile } from '../numbers/numbers-page.js';
import { EVERYTHING, TodaysNumbers } from '../numbers/todays-numbers.service.js';
import { listSteps, type Step } from './steps.js';
import { StoreSetup } from './store-setup.service.js';

/** Something that waits for the user. @property page of the store */
type Waiting = { text: string; why: string; page: string };

type OverviewView = {
  role: string;
  /** Null: the user may not see numbers. */
  today: { tiles: Tile[]; waiting: Waiting[] } | null;
  /** Null: everything is set up, or the user cannot do it. */
  setup: { steps: Step[]; progress: string; done: number; all: number } | null;
  /** Whether there is nothing to count yet. */
  isNew: boolean;
  services: string[];
};

const view = loadView<OverviewView>(import.meta.url, './views/overview.eta');
const STYLE = loadAsset(import.meta.url, './assets/overview.css');

/** Shows what somebody wants to know about a store who opens it, as far as their role allows. */
@Controller('app/stores/:account_id')
export class OverviewController {
  constructor(
    private readonly setup: StoreSetup,
    private readonly numbers: TodaysNumbers,
  ) {}

  @GetPage('store.read')
  async show(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { overview: t, console } = localization.t;
    const maySeeNumbers = isAllowed(store.role, 'getStatistics');
    const maySetUp = isAllowed(store.role, 'store.settings');
    const [today, setup] = await Promise.all([
      maySeeNumbers ? this.readToday(localization, store) : null,
      maySetUp ? this.readSetup(localization, userId, store) : null,
    ]);
    const isOwner = store.role === 'owner';
    return showPage({
      view,
      title: store.name,
      styles: [STYLE],
      data: {
        role: console.roles.yours[store.role],
        today,
        setup,
        isNew: setup?.steps.some(({ page, isDone }) => page === 'customers' && !isDone) ?? false,
        services: isOwner ? this.setup.listMissingServices().map((name) => t.services[name]) : [],
      },
    });
  }

  private async readToday(
    localization: Localization,
    { id }: EnteredStore,
  ): Promise<OverviewView['today']> {
    const { overview: t } = localization.t;
    const format = new NumbersFormat(localization.locale);
    const [{ tiles, totals }, { messages, imports }] = await Promise.all([
      this.numbers.get(id, EVERYTHING, getNow(), format),
      this.setup.countWaiting(id),
    ]);
    const counts: [number, 'messages' | 'imports' | 'rewards', string, string?][] = [
      [messages, 'messages', 'messages', '/links'],
      [imports, 'imports', 'transfers'],
      [totals.unlocked_rewards, 'rewards', 'numbers'],
    ];
    return {
      tiles,
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

  private async readSetup(
    localization: Localization,
    userId: number,
    { id }: EnteredStore,
  ): Promise<OverviewView['setup']> {
    const { t } = localization;
    const steps = listSteps(await this.setup.findSteps(userId, id), t.overview);
    const done = steps.filter(({ isDone }) => isDone).length;
    if (done === steps.length) return null;
    const progress = t.overview.progress({ done, all: steps.length });
    return { steps, progress, done, all: steps.length };
  }
}
