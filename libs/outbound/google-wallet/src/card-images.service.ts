import { Injectable } from '@nestjs/common';
import { createHash } from 'node:crypto';
import { Config } from '#kernel/config.js';
import { canonicalJson } from '#event-store/canonical-json.js';
import type { PassContent } from '#passes/pass-content.js';
import { PassImages } from './pass-images.js';

/** Addresses that name the design of a card's images by its hash. */
@Injectable()
export class CardImages extends PassImages {
  constructor(private readonly config: Config) {
    super();
  }

  async addressesOf({ card, rewards, stampsCount }: PassContent) {
    const design = {
      stamps: card.stampsRequired,
      rewards: rewards.map(({ stampsRequired }) => stampsRequired),
      icon: card.stampIcon,
      colors: [card.cardColor, card.stampColor, card.stampBackgroundColor],
      strip: [card.stripType, card.stripColor, card.stripPreset, card.stripOpacity],
    };
    const hash = createHash('sha256').update(canonicalJson(design)).digest('hex').slice(0, 32);
    const filled = Math.min(stampsCount, card.stampsRequired);
    const { publicUrl } = this.config;
    return {
      logo: `${publicUrl}/img/logo/${hash}.png`,
      hero: `${publicUrl}/img/strip/${hash}/${filled}@hero.png`,
    };
  }
}
