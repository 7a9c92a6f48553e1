import { Injectable } from '@nestjs/common';
import { ApplePasses } from '#apple-wallet/apple-passes.service.js';
import { lastModified } from '#apple-wallet/passkit.js';
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
    return this.apple.enabled;
  }

  get googleEnabled(): boolean {
    return this.google.enabled;
  }

  async createPackage(card: CustomerCard): Promise<PassPackage> {
    const { bytes, pass } = await this.apple.issue(card);
    return { bytes, changedAt: new Date(lastModified(pass, new Date())) };
  }

  saveUrlOf(card: CustomerCard): Promise<string | undefined> {
    return this.google.saveUrlOf(card, new Date());
  }
}
