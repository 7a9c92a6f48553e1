import { RejectedError } from '#platform/kernel/errors.js';
import { renderSamePerson } from './same-person.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/**
 * Limits the customers who are merged into one person, and the cards that these have, closed and second ones included
 * (MERGE-41, CODE-15). All that is done about a person takes time for each of them; at these limits the slowest query
 * takes a tenth of a second.
 */
export const PERSON_LIMITS = { customers: 100, cards: 1_000 };

/** @property merges how many merges into the customers themselves this includes */
export type PersonSize = { customers: number; cards: number; merges: number };

/** Measures all who are one person with some customers, as if these were merged. `$1` is their ids. */
export const MEASURE_PERSON = `
  with people as materialized (
    select distinct one.id
    from unnest($1::bigint[]) requested (id)
    cross join lateral (${renderSamePerson('requested.id')} limit ${PERSON_LIMITS.customers + 1}) one
  )
  select (select count(*) from people)::int as customers,
    (select count(*) from people join customer_cards k on k.customer_id = people.id)::int
    + (select count(*) from people join decoy_cards d on d.customer_id = people.id
       where d.confirmed_at is not null)::int as cards,
    (select count(*) from customers c where c.merged_into = any ($1))::int as merges`;

/** @throws RejectedError with the code limit_reached */
export function assertPersonSize({ customers, cards }: Omit<PersonSize, 'merges'>): void {
  if (customers > PERSON_LIMITS.customers) {
    throw createLimitError({
      base: [ISSUES.too_many_merged_customers({ max: PERSON_LIMITS.customers })],
    });
  }
  if (cards > PERSON_LIMITS.cards) {
    throw createLimitError({
      base: [ISSUES.too_many_merged_cards({ max: PERSON_LIMITS.cards })],
    });
  }
}

function createLimitError(errors: FieldIssues): RejectedError {
  return new RejectedError(
    errors,
    'limit_reached',
    'Closed and second cards count. Leave this as it is, and go on with the customer who is there.',
  );
}
