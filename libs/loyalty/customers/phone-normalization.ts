import { NotFoundError } from '#platform/kernel/errors.js';
import { normalizePhone } from './contact.js';
import type { Customer, StoreRegion } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

/**
 * Puts the number of somebody who was added while the store had another country, or none, or while the country had other
 * numbers, into the form that it has now. Also that of a merged customer, who may be restored.
 */
export function normalizeCustomerPhone(
  state: Customer | undefined,
  { country }: Pick<StoreRegion, 'country'>,
): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null || state.phone === null) return [];
  const phone = normalizePhone(state.phone, country);
  if (phone === undefined || phone === state.phone) return [];
  const data = { customerId: state.id, country, personal: { phone } };
  return [{ type: 'CustomerPhoneNormalized', data }];
}
