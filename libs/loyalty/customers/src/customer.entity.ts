import type { RowTable } from '#event-store/rows.js';
import { decideAgain } from './merging.js';
import { customer, movedValues, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

export const customerRows: RowTable<Customer, CustomerEvent> = {
  aggregate: customer,
  table: 'customers',
  person: 'r.id',
  shows: ({ id, erasedAt }) => (erasedAt === null ? id : null),
  claimsOf: (event, before) =>
    event.type === 'CustomerErased' ? { none: true } : movedValues(before, [event]),
  again: decideAgain,
};
