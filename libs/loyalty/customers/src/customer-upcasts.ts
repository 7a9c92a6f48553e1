import type { Upcast } from '#kernel/aggregate.js';
import type { CustomerCreated, CustomerEvent } from './customer.events.js';

/** The shapes that events of earlier versions have, and what makes them those of today. */
export const customerUpcasts = {
  CustomerCreated: [
    (data: Omit<CustomerCreated['data'], 'agreed'>): CustomerCreated['data'] => ({
      ...data,
      agreed: null,
    }),
  ],
} satisfies { [T in CustomerEvent['type']]?: readonly Upcast[] };
