import { Injectable } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import {
  countFilledStamps,
  toLogoUrl,
  createStripDesign,
  toStripUrl,
  type StripSize,
} from '#card-images/strip-design.js';
import { StripImages } from '#card-images/strip-images.service.js';
import type { PassContent } from './pass-content.js';

/** The images of one pass. The image at a URL never changes. */
export type PassImageLinks = {
  /** The hash of the design, see `StripImages`. */
  hash: string;
  filled: number;
  strip: Record<StripSize, string>;
  logo: string;
};

@Injectable()
export class PassImages {
  constructor(
    private readonly images: StripImages,
    private readonly config: Config,
  ) {}

  /** Creates the URLs of a pass's images, and stores the design so that they can be served. */
  async createLinks({
    accountId,
    card,
    offers,
    stampsCount,
  }: PassContent): Promise<PassImageLinks> {
    const design = createStripDesign(
      card,
      offers.map(({ stampsRequired }) => ({ stampsRequired, active: true })),
    );
    const hash = await this.images.remember(accountId, design);
    const filled = countFilledStamps(stampsCount, design);
    const { publicUrl } = this.config;
    const url = (size: StripSize) => toStripUrl(publicUrl, hash, filled, size);
    return {
      hash,
      filled,
      strip: { '1x': url('1x'), '2x': url('2x'), '3x': url('3x'), hero: url('hero') },
      logo: toLogoUrl(publicUrl, hash),
    };
  }
}
