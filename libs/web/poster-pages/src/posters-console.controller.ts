import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentStore, RequiresOperation, type EnteredStore } from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import { PosterDocuments, type ListedPoster } from './poster-documents.service.js';

const view = loadView<{ posters: ListedPoster[] }>(import.meta.url, './views/posters.eta');

/** Lists the posters of a store, to print. They are created and changed through the API. */
@Controller('app/stores/:account_id/posters')
export class PostersConsoleController {
  constructor(
    private readonly documents: PosterDocuments,
    private readonly pages: Pages,
  ) {}

  @Get()
  @RequiresOperation('listPosters')
  async list(
    @CurrentStore() { id }: EnteredStore,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const posters = await this.documents.list(id);
    await this.pages.send(request, reply, { view, title: 'Posters', data: { posters } });
  }
}
