import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { parsePathId } from '#platform/http/path.js';
import { negotiateLanguage } from '#platform/http/negotiation.js';
import { Throttle } from '#platform/http/throttle.js';
import {
  getCustomerTranslations,
  getTranslations,
  LANGUAGE_CODES,
} from '#translations/translations.js';
import { createStripDesign, toStripUrl } from '#outbound/card-images/strip-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { StripRenderer } from '#outbound/card-images/strip-renderer.service.js';
import { CurrentStore, type EnteredStore, GetPage } from '#web/pages/current-user.js';
import { getRootPath } from '#web/pages/page.js';
import { loadView } from '#web/pages/view.js';
import { findDarkModules } from '#web/web-card/qr-modules.js';
import { type PageResult, showPublicPage } from '#web/pages/page-results.js';
import { CardDesigns } from './card-designs.service.js';
import { createDraft } from './card-draft.js';
import { createFronts } from './card-fronts.js';
import { toDesignForm } from './design-form.dto.js';
import { parseStripQuery } from './draft-strips.js';
import type { FrontsView } from './fronts-view.js';
import { CARD_STYLE } from './list-view.js';
import { PreviewLinks } from './preview-links.service.js';

type PreviewView = FrontsView & { style: string; storeName: string; name: string };
type EndedView = { title: string; text: string };

const previewView = loadView<PreviewView>(import.meta.url, './views/preview.eta');
const endedView = loadView<EndedView>(import.meta.url, './views/preview-ended.eta');

/** A page of templates has twelve pictures, a designer nine. */
const PICTURES_PER_MINUTE = 600;
const HOUR_SECONDS = 3_600;

/** Serves pictures of cards that are not saved, and the code of the link to a preview. */
@Controller('app/stores/:account_id')
export class CardPicturesController {
  constructor(
    private readonly designs: CardDesigns,
    private readonly renderer: StripRenderer,
    private readonly links: PreviewLinks,
  ) {}

  @GetPage('createCard', 'card-strips')
  @Throttle(PICTURES_PER_MINUTE)
  async strip(
    @CurrentStore() store: EnteredStore,
    @Query() query: Record<string, unknown>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const strip = parseStripQuery(query);
    if (!strip) throw new NotFoundError('Image');
    const { design, filled, size } = strip;
    const { layer } = design;
    // Pictures of other stores are none of this store's.
    const picture = 'picture' in layer ? layer.picture : null;
    if (picture !== null && !(await this.designs.hasPicture(store.id, picture))) {
      throw new NotFoundError('Image');
    }
    const png = await this.renderer.render(store.id, design, { filled, size });
    await reply
      .type('image/png')
      .header('cache-control', `private, max-age=${HOUR_SECONDS}`)
      .send(png);
  }

  @GetPage('getCard', 'cards/:id/preview-code')
  async code(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { card } = await this.designs.get(store.id, parsePathId(id));
    const link = this.links.create({ accountId: store.id, cardId: card.id });
    const { path, side } = findDarkModules(link, 'M');
    await reply
      .type('image/svg+xml')
      .header('cache-control', 'no-store')
      .header('content-security-policy', "default-src 'none'")
      .send(
        `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${side}v${side}H0z"/><path d="${path}"/></svg>`,
      );
  }

  @GetPage('getCard', 'cards/:id/preview')
  async open(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { card } = await this.designs.get(store.id, parsePathId(id));
    const link = this.links.create({ accountId: store.id, cardId: card.id });
    await reply.header('cache-control', 'no-store').redirect(link, 303);
  }
}

/** Serves the preview of a saved card to whoever has its link, for an hour. */
@Controller('card-previews')
export class CardPreviewsController {
  constructor(
    private readonly designs: CardDesigns,
    private readonly images: CardImages,
    private readonly links: PreviewLinks,
    private readonly config: Config,
  ) {}

  @Get(':token')
  @Throttle(60)
  async show(@Param('token') token: string, @Req() request: FastifyRequest): Promise<PageResult> {
    const previewed = this.links.open(token);
    if (!previewed) return this.showEnded(request);
    const { accountId, cardId } = previewed;
    const [store, designed] = await Promise.all([
      this.designs.getStore(accountId),
      this.designs.get(accountId, cardId),
    ]);
    const { card, rewards } = designed;
    const localization = getCustomerTranslations(store);
    const t = localization.t.cardPages;
    const form = toDesignForm(card, rewards, store.timeZone);
    const draft = createDraft(form, card.stripPicture);
    const hash = await this.images.remember(accountId, createStripDesign(card, rewards));
    const fronts = createFronts({
      draft,
      storeName: store.name,
      store: localization,
      page: localization,
      toStripUrl: (filled, size) => toStripUrl(this.config.publicUrl, hash, filled, size),
    });
    return showPublicPage({
      view: previewView,
      title: `${t.preview.title} · ${card.name}`,
      lang: localization.locale,
      colors: { ground: card.cardColor, text: card.textColor },
      data: {
        root: getRootPath(this.config),
        fronts,
        t,
        warnings: [],
        points: null,
        style: CARD_STYLE.path,
        storeName: store.name,
        name: card.name,
      },
    });
  }

  private async showEnded(request: FastifyRequest): Promise<PageResult> {
    const { t, locale } = getTranslations(negotiateLanguage(request, LANGUAGE_CODES));
    const { ended: title, endedWhy: text } = t.cardPages.preview;
    return showPublicPage({
      view: endedView,
      title,
      lang: locale,
      status: 410,
      data: { title, text },
    });
  }
}
