import { Body, Controller, Get, Header, Param, Post, HttpCode } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { TakesFormOrAnything, type Form } from '#platform/http/body-kinds.js';
import { Throttle } from '#platform/http/throttle.js';
import { PassContents } from '#outbound/passes/pass-contents.service.js';
import { stopMessages } from '#outbound/messages/message-stops.service.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import { loadView } from '#web/pages/view.js';
import { getCustomerTranslations } from '#translations/translations.js';
import { type PageResult, showPublicPage, redirectTo } from '#web/pages/page-results.js';
import { allowMessages, hasStoppedMessages } from './holder-message-stops.service.js';
import { WebCards } from './web-cards.service.js';

const view = loadView<
  {
    action: 'stop' | 'allow';
    logo: { '1x': string; '2x': string } | null;
  } & Record<'title' | 'text' | 'submit' | 'path' | 'back', string>
>(import.meta.url, './views/message-stop.eta');

/** Lets whoever has the link of a card stop the messages to its holder, and allow them again. */
@Controller('passes/:uuid/messages')
export class MessageStopsController {
  constructor(
    private readonly pool: Pool,
    private readonly cards: WebCards,
    private readonly contents: PassContents,
    private readonly images: PassImages,
  ) {}

  @Get()
  @Header('cache-control', 'no-store')
  async show(@Param('uuid') uuid: string): Promise<PageResult> {
    const { id, uuid: ownUuid } = await this.getCard(uuid);
    const content = (await this.contents.load([id])).get(id);
    if (!content) throw new NotFoundError('Card');
    const isStopped = await hasStoppedMessages(this.pool, id);
    const { t: translations, locale: lang } = getCustomerTranslations(content);
    const t = translations.holderMessages.page;
    const title = t.title({ store: content.storeName });
    const { brand } = await this.images.createLinks(content);
    return showPublicPage({
      view,
      lang,
      title,
      colors: { ground: content.card.cardColor, text: content.card.textColor },
      data: {
        title,
        logo: brand && {
          '1x': toPath(brand.urls['wide@1x']),
          '2x': toPath(brand.urls['wide@2x']),
        },
        text: isStopped ? t.off : t.on,
        action: isStopped ? 'allow' : 'stop',
        submit: isStopped ? t.allow : t.stop,
        path: `/passes/${ownUuid}`,
        back: t.back,
      },
    });
  }

  /**
   * Stops messages, or allows them. Doing so twice changes nothing. Whatever is not the form of the page comes from a mail
   * program, whose button stops them: the address alone says so, in whatever media type, and the response is no redirect
   * (RFC 8058, section 3.1). The limit is for the few machines from which a large provider posts for all its readers.
   */
  @Post()
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  @TakesFormOrAnything()
  @Throttle(600)
  async change(@Param('uuid') uuid: string, @Body() form: Form): Promise<PageResult | undefined> {
    const { id, accountId, uuid: ownUuid } = await this.getCard(uuid);
    const action = findAction(form);
    if (action === 'allow') await allowMessages(this.pool, id);
    else await stopMessages(this.pool, { id, accountId });
    return action === undefined ? undefined : redirectTo(`/passes/${ownUuid}/messages`);
  }

  /** @throws NotFoundError */
  private async getCard(uuid: string) {
    const match = await this.cards.find(uuid);
    if (!match) throw new NotFoundError('Card');
    return match.card;
  }
}

/** Finds what the form of the page asks for. @returns undefined for a request that is not the page's form */
function findAction(form: Form): 'stop' | 'allow' | undefined {
  const isOneClick = Object.keys(form).some((name) => name.toLowerCase() === 'list-unsubscribe');
  const { action } = form;
  return !isOneClick && (action === 'stop' || action === 'allow') ? action : undefined;
}

/** Returns the path on the page's own host. */
function toPath(url: string): string {
  return new URL(url).pathname;
}
