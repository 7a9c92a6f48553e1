import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { WithoutSession } from './current-user.js';
import { Pages } from './pages.service.js';
import { loadView } from './view.js';

const view = loadView(import.meta.url, './views/elements.eta');

/** Shows every element that pages are made of, for developers. It has no data, and its forms do nothing. */
@Controller('app/elements')
export class ElementsController {
  constructor(private readonly pages: Pages) {}

  @Get()
  @WithoutSession()
  async show(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.pages.send(request, reply, { view, title: 'Elements', data: {} });
  }
}
