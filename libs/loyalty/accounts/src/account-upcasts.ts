import type { Upcast } from '#kernel/aggregate.js';
import type { AccountCreated, AccountEvent, AccountUpdated } from './account.events.js';

type WithoutCountries = Omit<AccountUpdated['data'], 'country' | 'smsCountries'>;
type WithoutTexts = Omit<WithoutCountries, 'consentTexts'>;

/** The shapes that events of earlier versions have, and what makes them those of today. */
export const accountUpcasts = {
  AccountCreated: [
    (data: Omit<AccountCreated['data'], 'country'>): AccountCreated['data'] => ({
      ...data,
      country: null,
    }),
  ],
  AccountUpdated: [
    // It names only what changed, which then was never a consent text.
    (data: WithoutTexts): WithoutCountries => data,
    // Likewise never the country, or those of SMS.
    (data: WithoutCountries): AccountUpdated['data'] => data,
  ],
} satisfies { [T in AccountEvent['type']]?: readonly Upcast[] };
