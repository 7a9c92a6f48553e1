import type { CustomerCard } from '#stamping/customer-card.js';

/** Holds a signed `.pkpass`. */
export type PassPackage = { bytes: Buffer; changedAt: Date };

/** Creates what the two wallet links of every customer card lead to. */
export abstract class PassLinks {
  /** Whether the vendor's credentials are configured. */
  abstract readonly appleEnabled: boolean;
  abstract readonly googleEnabled: boolean;

  /** Creates a package; undefined if there can be none. Call it only while `appleEnabled`. */
  abstract createPackage(card: CustomerCard): Promise<PassPackage | undefined>;

  /** Returns the URL that saves the pass to Google Wallet; undefined if there is none. Call it only while `googleEnabled`. */
  abstract createSaveUrl(card: CustomerCard): Promise<string | undefined>;
}
