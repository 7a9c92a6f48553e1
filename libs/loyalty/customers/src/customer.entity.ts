import type { Claimed, RowTable } from '#event-store/read-models/read-models.js';
import { decideAgain } from './merging.js';
import { customer, movedValues, uniqueValues, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

export const customerRows: RowTable<Customer, CustomerEvent> = {
  aggregate: customer,
  table: 'customers',
  person: 'r.id',
  shows: ({ id, erasedAt }) => (erasedAt === null ? id : null),
  claimsOf,
  again: decideAgain,
};

function claimsOf(event: CustomerEvent, before: Customer | undefined): Claimed {
  switch (event.type) {
    case 'CustomerErased':
      return { none: true };
    case 'CustomerResealed':
      return { none: true, taken: event.data.personal ? uniqueValues(event.data.personal) : [] };
    default:
      return movedValues(before, [event]);
  }
}
