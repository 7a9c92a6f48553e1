import { Injectable } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { ApplePasses } from '#outbound/apple-wallet/apple-passes.service.js';
import { getLastModifiedMs } from '#outbound/apple-wallet/passkit.js';
import { GoogleLinks } from '#outbound/google-wallet/google-links.service.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';

/** Creates what the two wallet links of every customer card lead to, for vendors whose credentials are configured. */
@Injectable()
export class PassLinks {
  constructor(
    private readonly apple: ApplePasses,
    private readonly google: GoogleLinks,
  ) {}

  get appleEnabled(): boolean {
    return this.apple.isEnabled;
  }

  get googleEnabled(): boolean {
    return this.google.isEnabled;
  }

  /** Creates a signed `.pkpass`. Call it only while `appleEnabled`. */
  async createPackage(card: CustomerCard): Promise<{ bytes: Buffer; changedAt: Date }> {
    const { bytes, pass } = await this.apple.issue(card);
    return { bytes, changedAt: new Date(getLastModifiedMs(pass, getNow())) };
  }

  /** Finds the URL that saves the pass to Google Wallet. Call it only while `googleEnabled`. */
  createSaveUrl(card: CustomerCard): Promise<string | undefined> {
    return this.google.findSaveUrl(card, getNow());
  }
}
