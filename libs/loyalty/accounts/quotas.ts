import type { QuotaName } from '#configuration/store-quotas.js';

/**
 * Labels what the operator limits for each store. The names are those of the command line and of `es.cap_overrides`:
 * of tables where a cap counts their rows.
 */
export const QUOTAS = {
  customers: 'Customers',
  cards: 'Cards',
  locations: 'Locations',
  posters: 'Posters',
  pictures: 'Different pictures of cards',
  webhook_subscriptions: 'Webhooks',
  import_rows_per_day: 'Imported rows in 24 hours',
  sms_per_day: 'Text messages in 24 hours',
  mails_per_day: 'E-mails to customers in 24 hours',
  signup_mails_per_day: 'E-mails from signup pages in 24 hours',
} as const satisfies Record<QuotaName, string>;

/** Lists what a store shares that its owner created in the console (ADR-0031). */
export const SHARED_QUOTAS = [
  'customers',
  'import_rows_per_day',
  'sms_per_day',
  'mails_per_day',
  'signup_mails_per_day',
] as const satisfies QuotaName[];

export type SharedQuotaName = (typeof SHARED_QUOTAS)[number];

export function isSharedQuota(name: QuotaName): name is SharedQuotaName {
  return SHARED_QUOTAS.some((shared) => shared === name);
}
