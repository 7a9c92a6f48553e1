import { Controller, Get, Header, Param, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Config } from '#kernel/config.js';
import { Passes } from '#passes/passes.service.js';
import { GoogleLinks } from './google-links.service.js';

/** The stable link of every customer card. Signed anew each time, so that it outlives any key. */
@ApiExcludeController()
@Controller('passes')
export class GoogleLinkController {
  constructor(
    private readonly passes: Passes,
    private readonly links: GoogleLinks,
    private readonly config: Config,
  ) {}

  @Get(':uuid/google')
  @Header('cache-control', 'no-store')
  async open(@Param('uuid') uuid: string, @Res() reply: FastifyReply): Promise<void> {
    const card = this.links.enabled ? await this.passes.holderOf(uuid) : undefined;
    const url = card && (await this.links.saveUrlOf(card, new Date()));
    // The page says what is wrong, and shows the card to those whom Google cannot be offered.
    const page = `${this.config.publicUrl}/passes/${encodeURIComponent(uuid)}`;
    await reply.redirect(url ?? page, 302);
  }
}
