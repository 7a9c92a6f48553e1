import type { Upcast } from '#platform/kernel/aggregate.js';
import type { CustomerCreated, CustomerEvent } from './customer.events.js';

/** Converts events of earlier versions to the shape of today. */
export const customerUpcasts = {
  CustomerCreated: [
    (data: Omit<CustomerCreated['data'], 'signup'>): CustomerCreated['data'] => ({
      ...data,
      signup: null,
    }),
  ],
} satisfies { [T in CustomerEvent['type']]?: readonly Upcast[] };
