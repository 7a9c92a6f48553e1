import { Body, Controller, Delete, Headers, HttpCode, Param, Post } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { Throttle } from '#platform/http/throttle.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { WebCards } from './web-cards.service.js';
import { parseUnsubscription, parseSubscription } from './web-push-subscription.js';
import { WebPushSubscriptions } from './web-push-subscriptions.service.js';
import { ISSUES } from '#translations/issues.js';

type RequestHeaders = Record<string, string | undefined>;

/** Serves the script of the web card. Errors are JSON, as in the API. */
@Controller('passes/:uuid/push')
export class WebPushController {
  constructor(
    private readonly cards: WebCards,
    private readonly subscriptions: WebPushSubscriptions,
    private readonly config: Config,
  ) {}

  @Post()
  @HttpCode(204)
  @Throttle(60)
  async subscribe(
    @Param('uuid') uuid: string,
    @Headers() headers: RequestHeaders,
    @Body() body: unknown,
  ): Promise<void> {
    const card = await this.getCard(uuid, headers);
    await this.subscriptions.add(card, parseSubscription(body, this.config.webPushRules));
  }

  @Delete()
  @HttpCode(204)
  @Throttle(60)
  async unsubscribe(
    @Param('uuid') uuid: string,
    @Headers() headers: RequestHeaders,
    @Body() body: unknown,
  ): Promise<void> {
    const card = await this.getCard(uuid, headers);
    await this.subscriptions.remove(card.id, parseUnsubscription(body));
  }

  /** Finds the card. @throws RejectedError for a cross-site request, NotFoundError */
  private async getCard(uuid: string, headers: RequestHeaders): Promise<CustomerCard> {
    const { origin } = new URL(this.config.publicUrl);
    const site = headers['sec-fetch-site'] ?? 'same-origin';
    if (headers['origin'] !== origin || site !== 'same-origin') {
      throw new RejectedError({ base: [ISSUES.other_site] });
    }
    const match = await this.cards.find(uuid);
    if (!match) throw new NotFoundError('Card');
    return match.card;
  }
}
