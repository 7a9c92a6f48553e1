/**
 * Lists what the operator limits for each store, by the names of the command line. They are also the names in
 * `es.cap_overrides`: those of tables where a cap counts their rows.
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
} as const;

export type QuotaName = keyof typeof QUOTAS;

/** Lists what a store shares that its owner created in the console (ADR-0133). */
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

export const QUOTA_NAMES = Object.keys(QUOTAS) as QuotaName[];

/** New quotas of a store by their names; null: the usual one again. */
export type QuotaChanges = Partial<Record<QuotaName, number | null>>;

export const MAX_QUOTA = 1_000_000_000;

export function isQuotaName(text: string): text is QuotaName {
  return Object.hasOwn(QUOTAS, text);
}

/**
 * Parses changes such as `customers=5000` and `cards=default`.
 * @returns the first text that is none of them
 */
export function parseQuotaChanges(
  texts: readonly string[],
): { changes: QuotaChanges } | { invalid: string } {
  const changes: QuotaChanges = {};
  for (const text of texts) {
    const [, name = '', value = ''] = /^([a-z_]+)=(default|\d{1,10})$/.exec(text) ?? [];
    const max = value === 'default' ? null : Number(value);
    if (!isQuotaName(name) || (max !== null && max > MAX_QUOTA)) return { invalid: text };
    changes[name] = max;
  }
  return { changes };
}
