import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import {
  countFilledStamps,
  toLogoUrl,
  createStripDesign,
  toStripUrl,
  type StripSize,
} from '#outbound/card-images/strip-design.js';
import {
  createLogoDesign,
  LOGO_SIZES,
  toDrawnLogoUrl,
  type LogoSize,
} from '#outbound/card-images/logo-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import type { PictureContent } from './pass-content.js';

/** The images of one pass. The image at a URL never changes. */
export type PassImageLinks = {
  /** The hash of the design, see `CardImages`. */
  hash: string;
  filled: number;
  strip: Record<StripSize, string>;
  /** A square image for a circle: of the store's logo, or of the stamp icon. */
  logo: string;
  /** The drawings of the store's logo on the card's colour; null without a logo. */
  brand: { hash: string; urls: Record<LogoSize, string> } | null;
};

const LOGO_SIZE_NAMES = Object.keys(LOGO_SIZES) as LogoSize[];

@Injectable()
export class PassImages {
  constructor(
    private readonly images: CardImages,
    private readonly config: Config,
  ) {}

  /** Creates the URLs of a pass's images, and stores the design so that they can be served. */
  async createLinks({
    accountId,
    card,
    logo,
    offers,
    stampsCount,
  }: PictureContent): Promise<PassImageLinks> {
    const design = createStripDesign(
      card,
      offers.map(({ stampsRequired }) => ({ stampsRequired, active: true })),
    );
    const hash = await this.images.remember(accountId, design);
    const filled = countFilledStamps(stampsCount, design);
    const { publicUrl } = this.config;
    const brand =
      logo === null ? null : await this.createLogoLinks(accountId, logo, card.cardColor);
    const url = (size: StripSize) => toStripUrl(publicUrl, hash, filled, size);
    return {
      hash,
      filled,
      strip: { '1x': url('1x'), '2x': url('2x'), '3x': url('3x'), hero: url('hero') },
      logo: brand?.urls.program ?? toLogoUrl(publicUrl, hash),
      brand,
    };
  }

  /** Creates the URLs of a logo's drawings on a colour, and stores the design so that they can be served. */
  async createLogoLinks(
    accountId: number,
    logo: string,
    ground: string,
  ): Promise<NonNullable<PassImageLinks['brand']>> {
    const hash = await this.images.remember(accountId, createLogoDesign(logo, ground));
    const urls = Object.fromEntries(
      LOGO_SIZE_NAMES.map((size) => [size, toDrawnLogoUrl(this.config.publicUrl, hash, size)]),
    ) as Record<LogoSize, string>;
    return { hash, urls };
  }
}
