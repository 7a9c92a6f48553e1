import { Injectable, Logger } from '@nestjs/common';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { createLogoDesign } from '#outbound/card-images/logo-design.js';
import { countFilledStamps, createStripDesign } from '#outbound/card-images/strip-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import type { CardPictures } from './card-message-texts.js';

/**
 * What the pictures in an e-mail show.
 * @property rewards those of the card that are not deleted
 * @property logo SHA-256 of the store's logo, in hex; null without one
 */
export type PicturedCard = {
  card: Card;
  rewards: Reward[];
  stampsCount: number;
  logo: string | null;
};

/** Draws the pictures in e-mails: a card as it looks in a wallet, with the store's logo above the stamps. */
@Injectable()
export class CardMessagePictures {
  private readonly log = new Logger('pictures in e-mails');

  constructor(private readonly images: CardImages) {}

  /** @returns null when they cannot be drawn: what the e-mail says matters more */
  async drawIfPossible(pictured: PicturedCard): Promise<CardPictures | null> {
    try {
      return await this.draw(pictured);
    } catch (error) {
      const reason = getErrorMessage(error);
      this.log.warn(
        `an e-mail about card ${pictured.card.id} is sent without pictures (${reason})`,
      );
      return null;
    }
  }

  private async draw({ card, rewards, stampsCount, logo }: PicturedCard): Promise<CardPictures> {
    const design = createStripDesign(card, rewards);
    const hash = await this.images.remember(card.accountId, design);
    const strip = await this.images.findPng(hash, countFilledStamps(stampsCount, design), '2x');
    if (!strip) throw new Error(`the strip of card ${card.id} could not be drawn`);
    return {
      logo: logo === null ? null : { cid: 'logo', png: await this.drawLogo(card, logo) },
      strip: { cid: 'card', png: strip },
    };
  }

  private async drawLogo({ accountId, cardColor }: Card, logo: string): Promise<Buffer> {
    const hash = await this.images.remember(accountId, createLogoDesign(logo, cardColor));
    const banner = await this.images.findLogoPng(hash, 'banner');
    if (!banner) throw new Error(`the logo ${logo} could not be drawn`);
    return banner;
  }
}
