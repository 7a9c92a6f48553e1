import { NotFoundError } from '#platform/kernel/errors.js';
import type { Customer } from './customer.js';
import { moveBounce } from './email-bounces.js';
import type { CustomerEvent, PersonalFields } from './customer.events.js';

/** Says all that is known of the person again. Of somebody who was erased there is nothing to say. */
export function resealCustomer(state: Customer | undefined): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) return [];
  const { id: customerId, mergedInto, merges = [] } = state;
  const additions = merges.map(({ fields, metadataKeys, references }) => ({
    fields,
    metadataKeys,
    references,
  }));
  const personal = { ...pickPerson(state), given: mergedInto?.given ?? {}, taken: additions };
  return [
    { type: 'CustomerResealed', data: { customerId, personal } },
    ...moveBounce(customerId, state.emailBounce),
  ];
}

/**
 * Replaces the person in a state from before the key was renewed by that of now: a process that still caches what they
 * were then is not to tell it, because some of it was somebody else's.
 */
export function withPerson(past: Customer, now: Customer): Customer {
  return { ...past, ...pickPerson(now) };
}

function pickPerson(state: Customer): PersonalFields {
  const { firstName, lastName, email, phone, birthday, metadata, externalReferences } = state;
  return { firstName, lastName, email, phone, birthday, metadata, externalReferences };
}
