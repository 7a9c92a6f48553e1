import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { customer, type Customer, type CustomerChanges } from '#loyalty/customers/customer.js';
import type { CustomerEvent } from '#loyalty/customers/customer.events.js';

/**
 * Omits the values that somebody holds who was merged into the customer: they lead to the customer already, and
 * stay with whom they would go back to.
 */
export function omitMerged(
  changes: CustomerChanges,
  { heldByMerged }: { heldByMerged: readonly (keyof CustomerChanges)[] },
): CustomerChanges {
  const entries = Object.entries(changes) as [keyof CustomerChanges, unknown][];
  return Object.fromEntries(entries.filter(([name]) => !heldByMerged.includes(name)));
}

/** Tells whether the row gives a consent that the customer does not have, and may have withdrawn. */
export function givesConsent(existing: Customer, changes: CustomerChanges): boolean {
  return (
    (changes.marketingConsent === true && !existing.marketingConsent) ||
    (changes.smsConsent === true && !existing.smsConsent)
  );
}

/** Omits consents that the customer had given once and withdrew: a file may be older than that. */
export function omitWithdrawn(
  changes: CustomerChanges,
  history: readonly StoredEvent[],
): CustomerChanges {
  const { marketingConsent, smsConsent, ...others } = changes;
  const isWithdrawn = (name: 'marketingConsent' | 'smsConsent') => {
    const values = history
      .map((event) => toRecorded<CustomerEvent>(customer, event).data)
      .flatMap((data) => (name in data ? [(data as Record<string, unknown>)[name]] : []));
    return values.at(-1) === false && values.includes(true);
  };
  return {
    ...others,
    ...(marketingConsent !== undefined &&
      !(marketingConsent && isWithdrawn('marketingConsent')) && { marketingConsent }),
    ...(smsConsent !== undefined && !(smsConsent && isWithdrawn('smsConsent')) && { smsConsent }),
  };
}
