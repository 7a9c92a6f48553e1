import { Injectable } from '@nestjs/common';
import { ApplePasses } from '#apple-wallet/apple-passes.service.js';
import { getLastModifiedMs } from '#apple-wallet/passkit.js';
import { GoogleLinks } from '#google-wallet/google-links.service.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PassLinks, type PassPackage } from './pass-links.service.js';

/** Creates the wallet links of the vendors whose credentials are configured. */
@Injectable()
export class VendorLinks extends PassLinks {
  constructor(
    private readonly apple: ApplePasses,
    private readonly google: GoogleLinks,
  ) {
    super();
  }

  get appleEnabled(): boolean {
    return this.apple.isEnabled;
  }

  get googleEnabled(): boolean {
    return this.google.isEnabled;
  }

  async createPackage(card: CustomerCard): Promise<PassPackage> {
    const { bytes, pass } = await this.apple.issue(card);
    return { bytes, changedAt: new Date(getLastModifiedMs(pass, new Date())) };
  }

  createSaveUrl(card: CustomerCard): Promise<string | undefined> {
    return this.google.findSaveUrl(card, new Date());
  }
}
