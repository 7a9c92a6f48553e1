import type { Upcast } from '#kernel/aggregate.js';
import type { CustomerCardEvent, StampsEarned } from './customer-card.events.js';

/** Converts events of earlier versions to the shape of today. */
export const customerCardUpcasts = {
  StampsEarned: [
    (data: Omit<StampsEarned['data'], 'templateVersion'>): StampsEarned['data'] => ({
      ...data,
      templateVersion: null,
    }),
  ],
} satisfies { [T in CustomerCardEvent['type']]?: readonly Upcast[] };
