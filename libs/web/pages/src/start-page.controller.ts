import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { API } from '#http/path.js';
import { ICON } from './assets.js';
import { prefersPage } from './error-pages.js';
import { Pages } from './pages.service.js';
import { loadView } from './view.js';

const view = loadView<{ icon: string }>(import.meta.url, './views/start.eta');

/** Serves the start page, or links for programs. */
@Controller()
export class StartPageController {
  constructor(
    private readonly config: Config,
    private readonly pages: Pages,
  ) {}

  @Get()
  async show(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (prefersPage(request, reply)) {
      const data = { icon: ICON.path };
      const { locale: lang } = this.pages.localize(request);
      await this.pages.sendPublic(reply, { view, lang, title: 'Inkpad', data });
      return;
    }
    const { publicUrl } = this.config;
    await reply.send({
      name: 'Inkpad',
      status_url: `${publicUrl}${API}/status`,
      documentation_url: `${publicUrl}/docs`,
      openapi_url: `${publicUrl}/openapi.json`,
    });
  }
}
