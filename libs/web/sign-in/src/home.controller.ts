import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentUser, type EnteredStore, type SignedInUser } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { Stores } from './stores.service.js';

const homeView = loadView<{ stores: (EnteredStore & { roleText: string })[] }>(
  import.meta.url,
  './views/home.eta',
);

@Controller('app')
export class HomeController {
  constructor(
    private readonly stores: Stores,
    private readonly pages: Pages,
  ) {}

  @Get()
  async showStores(
    @CurrentUser() { userId }: SignedInUser,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const stores = await this.stores.listForUser(userId);
    await this.pages.send(request, reply, {
      view: homeView,
      title: 'Your stores',
      data: { stores: stores.map((store) => ({ ...store, roleText: ROLE_TEXTS[store.role] })) },
    });
  }
}

const ROLE_TEXTS: Record<EnteredStore['role'], string> = {
  owner: 'You are an owner',
  manager: 'You are a manager',
  staff: 'You are staff',
};
