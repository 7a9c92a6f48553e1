import { Body, Controller, Get, Header, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { readSource, type AuthenticatedRequest } from '#platform/http/caller.js';
import { negotiateLanguage } from '#platform/http/negotiation.js';
import { getTranslations, LANGUAGE_CODES } from '#translations/translations.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { CONSENT_PARAMETER, withConsentToken } from '#outbound/messages/consent-links.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import { parseTag } from '#outbound/passes/pass-tag.js';
import { Passes, type Pass } from '#outbound/passes/passes.service.js';
import { getRootPath, setPageHeaders } from '#web/pages/page.js';
import { loadView } from '#web/pages/view.js';
import { redirectTo, redirectToUrl, PageResult, showPublicPage } from '#web/pages/page-results.js';
import { createCardManifest, renderCardIcon, renderCardPage, WORKER_SCRIPT } from './card-page.js';
import { CardStreams } from './card-streams.service.js';
import type { CardViewInput } from './card-view.js';
import { ConsentConfirmations } from './consent-confirmations.service.js';
import { detectDevice } from './device.js';
import { PassLinks } from './pass-links.service.js';
import { RememberedCards } from './remembered-cards.service.js';
import { VapidKeys } from './vapid-keys.service.js';
import { WalletBadges } from './wallet-badges.service.js';
import { WebCards } from './web-cards.service.js';

const messageView = loadView<{ title: string; text: string }>(
  import.meta.url,
  './views/message.eta',
);

/** How long the page says that a reward was redeemed. */
const REDEEMED_FOR_MS = 15 * 60_000;

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
    private readonly badges: WalletBadges,
    private readonly remembered: RememberedCards,
    private readonly consents: ConsentConfirmations,
    private readonly streams: CardStreams,
    private readonly vapid: VapidKeys,
    private readonly config: Config,
  ) {
    this.root = getRootPath(config);
  }

  @Get()
  @Header('cache-control', 'no-store')
  async show(
    @Param('uuid') uuid: string,
    @Query('joined') joined: unknown,
    @Query(CONSENT_PARAMETER) consentToken: unknown,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const match = await this.cards.find(uuid);
    if (!match) {
      // No store is known, so the browser chooses the language.
      const language = negotiateLanguage(request, LANGUAGE_CODES, reply);
      const { t, locale: lang } = getTranslations(language);
      const title = t.card.notFound;
      const data = { title, text: t.card.notFoundWhy };
      return showPublicPage({ view: messageView, status: 404, lang, title, data });
    }
    const consent = await this.consents.find(consentToken, match.card);
    if (match.isMerged) {
      const link = `${this.config.publicUrl}/passes/${match.card.uuid}`;
      return redirectToUrl(consent ? withConsentToken(link, consent.token) : link, 302);
    }
    const { pass, content } = await this.contents.open(match.card);
    await this.rememberOpened(match.card, request, reply);
    const device = detectDevice(request.headers['user-agent']);
    const wallets = {
      apple: this.links.appleEnabled && device !== 'android',
      google: this.links.googleEnabled && device !== 'apple',
    };
    const now = getNow();
    const input: CardViewInput = {
      content,
      tag: pass.tag,
      joined: joined === undefined ? null : { isLinkSent: joined !== 'unsent' },
      consent,
      now,
      device,
      wallets,
      badges: {
        apple: this.badges.find('apple', content.locale),
        google: this.badges.find('google', content.locale),
      },
      isInstalled: (wallets.apple || wallets.google) && (await this.isInWallet(pass)),
      redeemedReward: findRedeemedReward(pass, now),
      ...(await this.findImages(content)),
      pushKey: this.vapid.publicKey,
    };
    const page = renderCardPage(input, this.root);
    return new PageResult(() => setPageHeaders(reply.status(200), page));
  }

  /** Confirms the consent that the page of an opened link asks for. The page then says that it holds. */
  @Post()
  @Header('cache-control', 'no-store')
  @TakesForm()
  @Throttle(60)
  async confirm(
    @Param('uuid') uuid: string,
    @Body() { [CONSENT_PARAMETER]: token }: Form,
    @Req() request: AuthenticatedRequest,
  ): Promise<PageResult> {
    const card = await this.getCard(uuid);
    const consent = await this.consents.find(token, card);
    const path = `/passes/${card.uuid}`;
    if (!consent) return redirectTo(path);
    await this.consents.confirm(consent, card, readSource(request));
    return redirectTo(withConsentToken(path, consent.token));
  }

  /** Remembers the card instead of another one of its template that the browser has signed up for. */
  private async rememberOpened(
    card: CustomerCard,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const former = this.remembered.find(request, card.cardId);
    if (former === undefined || former === card.uuid) return;
    const holder = (await this.cards.find(former))?.card.customerId;
    this.remembered.replace(request, reply, card, holder === card.customerId);
  }

  /** Finds the images, as paths on the page's own host. */
  private async findImages(
    content: PassContent,
  ): Promise<Pick<CardViewInput, 'strip' | 'picture' | 'icon' | 'brand'>> {
    const { strip, logo, brand } = await this.images.createLinks(content);
    return {
      strip: {
        '1x': toPath(strip['1x']),
        '2x': toPath(strip['2x']),
        '3x': content.card.stripType === 'image' ? null : toPath(strip['3x']),
      },
      picture: strip.hero,
      icon: toPath(logo),
      brand: brand && {
        '1x': toPath(brand.urls['wide@1x']),
        '2x': toPath(brand.urls['wide@2x']),
        icon: toPath(brand.urls['app@192']),
      },
    };
  }

  /** Tells whether the customer has put the card into a wallet, and not removed it since. */
  private async isInWallet({ customerCardId }: Pass): Promise<boolean> {
    const installations = await this.passes.findInstallations(customerCardId);
    return (['apple', 'google'] as const).some((platform) => {
      const installation = installations.get(platform);
      return (
        installation !== undefined &&
        installation.installedAt !== null &&
        installation.removedAt === null
      );
    });
  }

  @Get('manifest.webmanifest')
  @Header('content-type', 'application/manifest+json; charset=utf-8')
  @Header('cache-control', 'no-store')
  async manifest(@Param('uuid') uuid: string): Promise<string> {
    const content = await this.getContent(await this.getCard(uuid));
    const { brand } = await this.images.createLinks(content);
    const logo = brand && {
      small: toPath(brand.urls['app@192']),
      large: toPath(brand.urls['app@512']),
    };
    return JSON.stringify(createCardManifest(content, this.root, logo));
  }

  /** Serves the icon. With a logo it is that, for workers and home screens that know only this path. */
  @Get('icon.svg')
  @Header('cache-control', 'no-store')
  async icon(@Param('uuid') uuid: string, @Res() reply: FastifyReply): Promise<void> {
    const content = await this.getContent(await this.getCard(uuid));
    const { brand } = await this.images.createLinks(content);
    if (brand) await reply.redirect(toPath(brand.urls['app@192']), 302);
    else await reply.type('image/svg+xml').send(renderCardIcon(content, this.root));
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

function toPath(url: string): string {
  return new URL(url).pathname;
}

/** Finds the name of the reward whose redemption was the last change of the balance, for a while. */
function findRedeemedReward(
  { notification, notificationTag, balanceTag, changedAt }: Pass,
  now: Date,
): string | null {
  const isLatest =
    notificationTag === balanceTag && now.getTime() - changedAt.getTime() < REDEEMED_FOR_MS;
  return isLatest && notification?.kind === 'redeemed' ? notification.rewardName : null;
}
