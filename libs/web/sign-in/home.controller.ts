import { Controller, Get } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import {
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
} from '#web/pages/current-user.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { Stores } from './stores.service.js';

const homeView = loadView<{ stores: EnteredStore[]; mayCreateStore: boolean }>(
  import.meta.url,
  './views/home.eta',
);

@Controller('app')
export class HomeController {
  constructor(
    private readonly stores: Stores,
    private readonly config: Config,
  ) {}

  @Get()
  async showStores(
    @CurrentUser() { userId }: SignedInUser,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const stores = await this.stores.listForUser(userId);
    const ownedCount = stores.filter(({ role }) => role === 'owner').length;
    const mayCreateStore = ownedCount > 0 && ownedCount < this.config.maxStoresPerOwner;
    return showPage({
      view: homeView,
      title: localization.t.console.stores,
      data: { stores, mayCreateStore },
    });
  }

  /** Handles pages that do not exist, so that the error page has the menu of the store. */
  @GetPage('store.read', 'stores/:account_id/*')
  showMissing(): never {
    throw new NotFoundError('Page');
  }
}
