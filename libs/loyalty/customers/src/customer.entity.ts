import type { ClaimChanges, ReadModel } from '#event-store/read-models/read-models.js';
import { decideAgain } from './merging.js';
import { customer, movedValues, uniqueValues, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

export const customerReadModel: ReadModel<Customer, CustomerEvent> = {
  aggregate: customer,
  table: 'customers',
  subjectIdSql: 'r.id',
  findSubjectId: ({ id, erasedAt }) => (erasedAt === null ? id : null),
  getClaimChanges: claimsOf,
  redecide: ({ plannedEvents, state, earlierEvents }) =>
    decideAgain({ planned: plannedEvents, state, earlier: earlierEvents }),
};

function claimsOf(event: CustomerEvent, before: Customer | undefined): ClaimChanges {
  switch (event.type) {
    case 'CustomerErased':
      return { releasesAll: true };
    case 'CustomerResealed':
      return {
        releasesAll: true,
        claims: event.data.personal ? uniqueValues(event.data.personal) : [],
      };
    default: {
      const { taken, released } = movedValues(before, [event]);
      return { claims: taken, releases: released };
    }
  }
}
