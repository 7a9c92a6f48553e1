import { Controller, Get, Header, Param, Res, Req } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { detectDevice } from './device.js';
import { PassLinks } from './pass-links.service.js';
import { WebCards } from './web-cards.service.js';

const PACKAGE_TYPE = 'application/vnd.apple.pkpass';

/**
 * Serves the wallet links of every customer card. Without a pass they redirect to the web card, which also explains a
 * broken link.
 */
@Controller('passes/:uuid')
export class PassLinksController {
  constructor(
    private readonly cards: WebCards,
    private readonly links: PassLinks,
    private readonly config: Config,
  ) {}

  @Get('apple')
  @Header('cache-control', 'no-store')
  async apple(
    @Param('uuid') uuid: string,
    @Req() { headers }: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const canHavePass = this.links.appleEnabled && detectDevice(headers['user-agent']) === 'apple';
    const card = canHavePass ? (await this.cards.find(uuid))?.card : undefined;
    const pass = card && (await this.links.createPackage(card));
    if (!pass) return this.redirectToWebCard(card?.uuid ?? uuid, reply);
    await reply
      .type(PACKAGE_TYPE)
      .header('last-modified', pass.changedAt.toUTCString())
      .header('content-disposition', 'attachment; filename="card.pkpass"')
      .send(pass.bytes);
  }

  @Get('google')
  @Header('cache-control', 'no-store')
  async google(
    @Param('uuid') uuid: string,
    @Req() { headers }: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    // A card saved on a desktop also appears on the same person's phone.
    const canBeSaved = this.links.googleEnabled && detectDevice(headers['user-agent']) !== 'apple';
    const card = canBeSaved ? (await this.cards.find(uuid))?.card : undefined;
    const url = card && (await this.links.createSaveUrl(card));
    if (url === undefined) return this.redirectToWebCard(card?.uuid ?? uuid, reply);
    await reply.redirect(url, 302);
  }

  private async redirectToWebCard(uuid: string, reply: FastifyReply): Promise<void> {
    await reply.redirect(`${this.config.publicUrl}/passes/${encodeURIComponent(uuid)}`, 302);
  }
}
