import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { ClaimChanges, ReadModel } from '#platform/event-store/read-models/read-models.js';
import { decideMergedAway } from './merging.js';
import { customer, findMovedValues, listUniqueValues, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';
import { ISSUES } from '#translations/issues.js';

export const customerReadModel: ReadModel<Customer, CustomerEvent> = {
  ...customer,
  subjectIdSql: 'r.id',
  findSubjectId: ({ id, erasedAt }) => (erasedAt === null ? id : null),
  getClaimChanges,
  followUp: { decide: decideMergedAway },
};

export const customerCap: CapKind = {
  table: customer.table,
  ownerColumn: 'account_id',
  countedCondition: 'r.merged_into is null and r.erased_at is null',
  keepsCount: true,
  code: 'quota_exceeded',
  issue: ISSUES.too_many_customers,
  resolution: 'Erase customers who are gone, or ask whoever runs the service for a larger quota.',
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
