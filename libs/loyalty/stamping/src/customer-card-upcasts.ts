import type { Upcast } from '#kernel/aggregate.js';
import type { CustomerCardEvent, StampsEarned } from './customer-card.events.js';

/** The shapes that events of earlier versions have, and what makes them those of today. */
export const customerCardUpcasts = {
  StampsEarned: [
    (data: Omit<StampsEarned['data'], 'templateVersion'>): StampsEarned['data'] => ({
      ...data,
      templateVersion: null,
    }),
  ],
} satisfies { [T in CustomerCardEvent['type']]?: readonly Upcast[] };
