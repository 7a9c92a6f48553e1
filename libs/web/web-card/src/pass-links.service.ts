import type { CustomerCard } from '#stamping/customer-card.js';

/** A signed `.pkpass`. */
export type PassPackage = { bytes: Buffer; changedAt: Date };

/** What the wallets of the vendors can be given, behind the two links of every customer card. */
export abstract class PassLinks {
  /** Whether there are credentials for a vendor's wallet. */
  abstract readonly appleEnabled: boolean;
  abstract readonly googleEnabled: boolean;

  /** Undefined: there can be none. Only asked while `appleEnabled`. */
  abstract createPackage(card: CustomerCard): Promise<PassPackage | undefined>;

  /** The vendor's page that saves the pass. Undefined: there can be none. Only asked while `googleEnabled`. */
  abstract saveUrlOf(card: CustomerCard): Promise<string | undefined>;
}
