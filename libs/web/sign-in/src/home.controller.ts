import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#kernel/errors.js';
import {
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { Stores } from './stores.service.js';

const homeView = loadView<{ stores: EnteredStore[]; mayCreateStore: boolean }>(
  import.meta.url,
  './views/home.eta',
);

@Controller('app')
export class HomeController {
  constructor(
    private readonly stores: Stores,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get()
  async showStores(
    @CurrentUser() { userId }: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const stores = await this.stores.listForUser(userId);
    const ownedCount = stores.filter(({ role }) => role === 'owner').length;
    const mayCreateStore = ownedCount > 0 && ownedCount < this.config.maxStoresPerOwner;
    await this.pages.send(request, reply, {
      view: homeView,
      title: this.pages.localize(request).t.console.stores,
      data: { stores, mayCreateStore },
    });
  }

  /** Handles pages that do not exist, so that the error page has the menu of the store. */
  @Get('stores/:account_id/*')
  @RequiresOperation('store.read')
  showMissing(): never {
    throw new NotFoundError('Page');
  }
}
