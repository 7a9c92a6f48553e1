import type { RejectedError } from '#platform/kernel/errors.js';
import { Subjects } from '#platform/event-store/personal-keys/personal-parts.js';
import type { RequestSubjects } from '#platform/http/idempotency.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

/** Refuses a command to an erased customer, or to one of their cards. */
export function createCustomerErasedError(): RejectedError {
  return createStampingError(
    { base: [ISSUES.customer_erased] },
    'customer_erased',
    'Add the person as a new customer if they come back: an erased one cannot be changed any more.',
  );
}

/** Says that the personal data in events is that of customers. */
export const customerSubjects = new Subjects('customerId', createCustomerErasedError);

/** Says which requests are about a customer. */
export const customerRequests: RequestSubjects = {
  find(params, route) {
    const { customer_id, id } = params as { customer_id?: string; id?: string };
    const named = customer_id ?? (route.includes('/customers/:id') ? id : undefined);
    const customerId = Number(named);
    return Number.isSafeInteger(customerId) && customerId > 0 ? customerId : undefined;
  },
  createErasedError: () =>
    createStampingError(
      { base: [ISSUES.response_erased] },
      'customer_erased',
      'The request was carried out the first time. Nothing was done now.',
    ),
};
