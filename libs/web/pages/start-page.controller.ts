import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { API } from '#platform/http/path.js';
import { ICON } from './assets.js';
import { prefersPage } from './error-pages.js';
import { showPublicPage, type PageResult } from './page-results.js';
import { loadView } from './view.js';
import { localizeRequest } from './localize.js';

const view = loadView<{ icon: string }>(import.meta.url, './views/start.eta');

/** Serves the start page, or links for programs. */
@Controller()
export class StartPageController {
  constructor(private readonly config: Config) {}

  @Get()
  show(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): PageResult | object {
    if (prefersPage(request, reply)) {
      const data = { icon: ICON.path };
      const { locale: lang } = localizeRequest(request);
      return showPublicPage({ view, lang, title: 'Inkpad', data });
    }
    const { publicUrl } = this.config;
    return {
      name: 'Inkpad',
      status_url: `${publicUrl}${API}/status`,
      documentation_url: `${publicUrl}/docs`,
      openapi_url: `${publicUrl}/openapi.json`,
    };
  }
}
