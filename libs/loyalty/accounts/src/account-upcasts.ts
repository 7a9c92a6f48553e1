import type { Upcast } from '#kernel/aggregate.js';
import type { AccountEvent, AccountUpdated } from './account.events.js';

/** The shapes that events of earlier versions have, and what makes them those of today. */
export const accountUpcasts = {
  AccountUpdated: [
    // It names only what changed, which then was never a consent text.
    (
      data: Omit<AccountUpdated['data'], 'consentTexts' | 'smsCountries'>,
    ): Omit<AccountUpdated['data'], 'smsCountries'> => data,
    // Likewise never the countries of SMS.
    (data: Omit<AccountUpdated['data'], 'smsCountries'>): AccountUpdated['data'] => data,
  ],
} satisfies { [T in AccountEvent['type']]?: readonly Upcast[] };
