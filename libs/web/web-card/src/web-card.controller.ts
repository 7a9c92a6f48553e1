import { Controller, Get, Header, Param, Query, Req, Res, UseFilters } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#kernel/errors.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import type { PassContent } from '#passes/pass-content.js';
import { PassContents } from '#passes/pass-contents.service.js';
import { PassImages } from '#passes/pass-images.service.js';
import { parseTag } from '#passes/pass-tag.js';
import { Passes } from '#passes/passes.service.js';
import { createCardManifest } from './card-manifest.js';
import { renderCardPage, renderMessagePage, type StripLinks } from './card-page.js';
import { CARD_SCRIPT_PATH } from './card-script.js';
import { CardStreams } from './card-streams.service.js';
import { detectDevice } from './device.js';
import { PagesFilter, sendPage, negotiateTranslations } from './pages.filter.js';
import { PassLinks } from './pass-links.service.js';
import { VapidKeys } from './vapid-keys.service.js';
import { renderCardIcon } from './web-card-icon.js';
import { WebCards } from './web-cards.service.js';
import { WORKER_SCRIPT } from './worker-script.js';

/** The policy of a worker's own script applies to it: it may only connect to this service. */
const WORKER_POLICY = "default-src 'none'; connect-src 'self'";

/** Serves the card as a page to anybody with the link, which is as secret as the pass itself. */
@Controller('passes/:uuid')
export class WebCardController {
  /** The prefix of every path, where the service shares its host with others. */
  private readonly root: string;

  constructor(
    private readonly cards: WebCards,
    private readonly passes: Passes,
    private readonly contents: PassContents,
    private readonly images: PassImages,
    private readonly links: PassLinks,
    private readonly streams: CardStreams,
    private readonly vapid: VapidKeys,
    private readonly config: Config,
  ) {
    this.root = new URL(config.publicUrl).pathname.replace(/\/$/, '');
  }

  @Get()
  @Header('cache-control', 'no-store')
  @UseFilters(PagesFilter)
  async show(
    @Param('uuid') uuid: string,
    @Query('joined') joined: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const match = await this.cards.find(uuid);
    if (!match) {
      const { t, locale } = negotiateTranslations(request, reply);
      return sendPage(reply.status(404), renderMessagePage(locale, t.notFound, t.notFoundWhy));
    }
    if (match.isMerged) {
      await reply.redirect(`${this.config.publicUrl}/passes/${match.card.uuid}`, 302);
      return;
    }
    const { pass, content } = await this.contents.open(match.card);
    const page = renderCardPage({
      content,
      tag: pass.tag,
      joined: joined === undefined ? null : { isLinkSent: joined !== 'unsent' },
      now: new Date(),
      device: detectDevice(request.headers['user-agent']),
      wallets: { apple: this.links.appleEnabled, google: this.links.googleEnabled },
      ...(await this.findImages(content)),
      pushKey: this.vapid.publicKey,
      root: this.root,
      scriptPath: this.root + CARD_SCRIPT_PATH,
    });
    await sendPage(reply, page);
  }

  /** Finds the images, as paths on the page's own host. */
  private async findImages(content: PassContent): Promise<{ strip: StripLinks; logo: string }> {
    const { strip, logo } = await this.images.createLinks(content);
    const path = (url: string) => new URL(url).pathname;
    return {
      strip: { '1x': path(strip['1x']), '2x': path(strip['2x']), '3x': path(strip['3x']) },
      logo: path(logo),
    };
  }

  @Get('manifest.webmanifest')
  @Header('content-type', 'application/manifest+json; charset=utf-8')
  @Header('cache-control', 'no-store')
  async manifest(@Param('uuid') uuid: string): Promise<string> {
    return JSON.stringify(
      createCardManifest(await this.getContent(await this.getCard(uuid)), this.root),
    );
  }

  @Get('icon.svg')
  @Header('content-type', 'image/svg+xml')
  @Header('cache-control', 'no-store')
  async icon(@Param('uuid') uuid: string): Promise<string> {
    return renderCardIcon((await this.getContent(await this.getCard(uuid))).card).text;
  }

  /** Serves the worker for any link, so that browsers with a deleted card still get updates. */
  @Get('worker.js')
  @Header('content-type', 'text/javascript; charset=utf-8')
  @Header('cache-control', 'no-cache')
  worker(@Param('uuid') uuid: string, @Res({ passthrough: true }) reply: FastifyReply): string {
    // By default its scope would not contain the card's page.
    reply.header('content-security-policy', WORKER_POLICY);
    reply.header('service-worker-allowed', `${this.root}/passes/${encodeURIComponent(uuid)}`);
    return WORKER_SCRIPT;
  }

  /** Sends server-sent events, each with the tag of a change. */
  @Get('events')
  async events(
    @Param('uuid') uuid: string,
    @Query('since') since: unknown,
    @Req() { ip, headers, method }: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const card = await this.getCard(uuid);
    await this.passes.open(card);
    const issuedTag = await this.passes.findIssuedTag(parseTag(headers['last-event-id'] ?? since));
    const stream = await this.streams.open(card.id, issuedTag, ip);
    // Fastify does not send the stream for HEAD, so nothing else would ever close it.
    if (method === 'HEAD') stream.push(null);
    await reply
      .type('text/event-stream')
      .header('cache-control', 'no-store, no-transform')
      // Otherwise nginx buffers the response.
      .header('x-accel-buffering', 'no')
      .send(stream);
  }

  private async getCard(uuid: string): Promise<CustomerCard> {
    const match = await this.cards.find(uuid);
    if (!match) throw new NotFoundError('Card');
    return match.card;
  }

  private async getContent({ id }: CustomerCard): Promise<PassContent> {
    const content = (await this.contents.load([id])).get(id);
    if (!content) throw new Error(`customer card ${id} has no content`);
    return content;
  }
}
