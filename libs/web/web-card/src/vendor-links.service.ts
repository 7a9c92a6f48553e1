import { Injectable } from '@nestjs/common';
import { GoogleLinks } from '#google-wallet/google-links.service.js';
import type { CustomerCard } from '#stamping/customer-card.js';
import { PassLinks } from './pass-links.service.js';

/** The wallets of the vendors whose credentials are set. */
@Injectable()
export class VendorLinks extends PassLinks {
  readonly appleEnabled = false;

  readonly googleEnabled: boolean;

  constructor(private readonly google: GoogleLinks) {
    super();
    this.googleEnabled = google.enabled;
  }

  async packageOf(): Promise<undefined> {
    return undefined;
  }

  saveUrlOf(card: CustomerCard): Promise<string | undefined> {
    return this.google.saveUrlOf(card, new Date());
  }
}
