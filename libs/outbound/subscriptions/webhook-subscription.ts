import { isDeepStrictEqual } from 'node:util';
import { findChanges, type Changes } from '#platform/kernel/changes.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { PayloadFormat } from '#outbound/public-events/public-events.js';
import { HIDDEN_VALUE, type CustomHeaders } from '#outbound/sending/webhook-headers.js';
import type { SignatureKind } from '#outbound/sending/webhook-signature.js';
import { ISSUES } from '#translations/issues.js';

export const EVERY_EVENT = '*';

export type DisabledReason = 'disabled_by_user' | 'failing' | 'blocked_address';

/** A URL and the events that are sent to it. The signing secret is kept apart from it, sealed. */
export type WebhookSubscription = {
  id: number;
  accountId: number;
  /** Event names, or only `*`. */
  events: string[];
  targetUrl: string;
  description: string | null;
  payloadFormat: PayloadFormat;
  /** The store's own. Their values are hidden unless they were opened for a change. */
  headers: CustomHeaders;
  /** Only events about these cards, and events about none; null: all. */
  cardIds: number[] | null;
  /** The same for locations. */
  locationIds: number[] | null;
  /** Whether personal fields are sent, instead of null. */
  personalData: boolean;
  signature: SignatureKind;
  /** Null unless it signs with a private key. */
  publicKey: string | null;
  enabled: boolean;
  disabledAt: Date | null;
  disabledReason: DisabledReason | null;
  lastDeliveryAt: Date | null;
  lastDeliveryStatus: number | null;
  lastDeliveryError: string | null;
  createdAt: Date;
  updatedAt: Date;
};

/** The attributes that a caller may set. */
export type SubscriptionAttributes = Pick<
  WebhookSubscription,
  | 'events'
  | 'targetUrl'
  | 'description'
  | 'payloadFormat'
  | 'headers'
  | 'cardIds'
  | 'locationIds'
  | 'personalData'
  | 'signature'
  | 'enabled'
>;

/** Only the fields that the request contains. The value of a header may be hidden: then it stays. */
export type SubscriptionChanges = Partial<SubscriptionAttributes>;

/** The result of the latest test, which takes no delivery. */
export type LastTest = {
  at: string;
  status: number | null;
  error: string | null;
  duration_ms: number;
};

/** The result of a change: the subscription after it, and whether it was switched on or off. */
export type SubscriptionChange = {
  subscription: WebhookSubscription;
  switchedTo: 'on' | 'off' | null;
};

/**
 * Applies changes. Returns undefined when nothing would change; then `updated_at` stays as well (HOOK-44).
 * @throws RejectedError when flat would not have exactly one named event, for another signature, and for a hidden value
 *   of no header
 */
export function changeSubscription(
  current: WebhookSubscription,
  changes: SubscriptionChanges,
  now: Date,
): SubscriptionChange | undefined {
  const { enabled = current.enabled, headers, ...others } = changes;
  const settings = { ...others, ...(headers && { headers: keepHidden(headers, current.headers) }) };
  const after = { ...current, ...settings };
  if (after.signature !== current.signature) {
    throw new RejectedError({ signature: [ISSUES.signature_fixed] });
  }
  if (after.payloadFormat === 'flat' && getOnlyEvent(after.events) === null) {
    throw new RejectedError({ payload_format: [ISSUES.flat_needs_one_event] });
  }
  const switched = enabled === current.enabled ? null : enabled ? 'on' : 'off';
  const same = Object.entries(settings).every(([name, value]) =>
    isDeepStrictEqual(value, current[name as keyof typeof settings]),
  );
  if (same && switched === null) return undefined;
  return {
    subscription: { ...after, ...getStateAfter(switched, now), updatedAt: now },
    switchedTo: switched,
  };
}

/** How far the clocks of two processes, or a commit and its time, may be apart. */
const GAP_MARGIN_MS = 10_000;

/** Finds the times between which a subscription that resumes has missed events. What it did get is left out later. */
export function findGap(
  { disabledAt, createdAt }: Pick<WebhookSubscription, 'disabledAt' | 'createdAt'>,
  now: Date,
): { from: Date; to: Date } {
  const since = (disabledAt ?? now).getTime() - GAP_MARGIN_MS;
  return {
    from: new Date(Math.max(since, createdAt.getTime())),
    to: new Date(now.getTime() + GAP_MARGIN_MS),
  };
}

/** Puts the current values in the place of hidden ones. @throws RejectedError where there is none */
function keepHidden(headers: CustomHeaders, current: CustomHeaders): CustomHeaders {
  const values = new Map(
    Object.entries(current).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (value !== HIDDEN_VALUE) return [name, value];
      const currentValue = values.get(name.toLowerCase()) ?? HIDDEN_VALUE;
      if (currentValue === HIDDEN_VALUE) {
        throw new RejectedError({ headers: [ISSUES.header_without_value({ name })] });
      }
      return [name, currentValue];
    }),
  );
}

function getStateAfter(
  switched: SubscriptionChange['switchedTo'],
  now: Date,
): Partial<WebhookSubscription> {
  if (switched === 'on') return { enabled: true, disabledAt: null, disabledReason: null };
  if (switched === 'off') {
    return { enabled: false, disabledAt: now, disabledReason: 'disabled_by_user' };
  }
  return {};
}

/**
 * Renders settings for the audit log, which is kept for ever: without the values of headers and the
 * parts of the URL that may be secret.
 */
export function toAuditedSettings(settings: SubscriptionAttributes): Record<string, unknown> {
  const { targetUrl, headers } = settings;
  return { ...toFields(settings), target_url: maskUrl(targetUrl), headers: Object.keys(headers) };
}

/** Finds the settings that differ, by their names in the API. */
export function toAuditedChanges(
  before: SubscriptionAttributes,
  after: SubscriptionAttributes,
): Changes {
  const audited = { from: toAuditedSettings(before), to: toAuditedSettings(after) };
  const fields = Object.keys(findChanges(toFields(before), toFields(after)));
  return Object.fromEntries(
    fields.map((field) => [field, { from: audited.from[field], to: audited.to[field] }]),
  );
}

const FIELDS: Record<keyof SubscriptionAttributes, string> = {
  targetUrl: 'target_url',
  events: 'events',
  description: 'description',
  payloadFormat: 'payload_format',
  headers: 'headers',
  cardIds: 'card_ids',
  locationIds: 'location_ids',
  personalData: 'personal_data',
  signature: 'signature',
  enabled: 'enabled',
};

function toFields(settings: SubscriptionAttributes): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(FIELDS).map(([name, field]) => [
      field,
      settings[name as keyof SubscriptionAttributes],
    ]),
  );
}

/** Shows the host alone: some receivers know their callers by the path, others by the query. */
function maskUrl(url: string): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}/…`;
}

/** Returns the event of a subscription that names exactly one (HOOK-30). */
export function getOnlyEvent(events: readonly string[]): string | null {
  const [first, ...others] = events;
  return first === undefined || first === EVERY_EVENT || others.length > 0 ? null : first;
}

export function isSubscribedTo(events: readonly string[], type: string): boolean {
  return events.includes(type) || events.includes(EVERY_EVENT);
}
