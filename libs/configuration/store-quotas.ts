/** How much a store may have of each thing, unless the operator says otherwise; null: no limit. */
export const DEFAULT_QUOTAS = {
  /** Merged and erased ones are not counted. */
  customers: null,
  /** Archived ones are counted. */
  cards: 500,
  locations: 500,
  posters: 200,
  /** Different pictures that were uploaded, up to 1.5 MB each. */
  pictures: 1000,
  webhook_subscriptions: 25,
  /** As many again may wait for a start. */
  import_rows_per_day: 500_000,
  sms_per_day: 500,
  /** E-mails to customers. */
  mails_per_day: 10_000,
  /** E-mails that signup pages ask for. */
  signup_mails_per_day: 2000,
};

export type QuotaName = keyof typeof DEFAULT_QUOTAS;
export type StoreQuotas = {
  [Name in QuotaName]: Name extends 'customers' ? number | null : number;
};

/** New quotas of a store by their names; null: the usual one again. */
export type QuotaChanges = Partial<Record<QuotaName, number | null>>;

export const QUOTA_NAMES = Object.keys(DEFAULT_QUOTAS) as QuotaName[];
export const MAX_QUOTA = 1_000_000_000;

export function isQuotaName(text: string): text is QuotaName {
  return Object.hasOwn(DEFAULT_QUOTAS, text);
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

/** Parses the quotas of every store, such as `customers=5000,sms_per_day=100`; the others keep their defaults. */
export function parseStoreQuotas(text: string): StoreQuotas | undefined {
  const parsed = parseQuotaChanges(text.split(',').map((part) => part.trim()));
  if ('invalid' in parsed) return undefined;
  const changes = Object.entries(parsed.changes).filter(([, max]) => max !== null);
  return { ...DEFAULT_QUOTAS, ...Object.fromEntries(changes) };
}
