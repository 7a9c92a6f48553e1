import type { ClaimChanges, ReadModel } from '#event-store/read-models/read-models.js';
import { redecideCustomer } from './merging.js';
import { customer, findMovedValues, listUniqueValues, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

export const customerReadModel: ReadModel<Customer, CustomerEvent> = {
  aggregate: customer,
  table: 'customers',
  subjectIdSql: 'r.id',
  findSubjectId: ({ id, erasedAt }) => (erasedAt === null ? id : null),
  getClaimChanges,
  redecide: redecideCustomer,
};

function getClaimChanges(event: CustomerEvent, before: Customer | undefined): ClaimChanges {
  switch (event.type) {
    case 'CustomerErased':
      return { releasesAll: true };
    case 'CustomerResealed':
      return {
        releasesAll: true,
        claims: event.data.personal ? listUniqueValues(event.data.personal) : [],
      };
    default: {
      const { added, released } = findMovedValues(before, [event]);
      return { claims: added, releases: released };
    }
  }
}
