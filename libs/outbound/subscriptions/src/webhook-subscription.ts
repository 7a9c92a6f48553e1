import { isDeepStrictEqual } from 'node:util';
import { findChanges, type Changes } from '#kernel/changes.js';
import { RejectedError } from '#kernel/errors.js';
import type { PayloadFormat } from '#public-events/public-events.js';

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
  'events' | 'targetUrl' | 'description' | 'payloadFormat' | 'enabled'
>;

/** Only the fields that the request contains. */
export type SubscriptionChanges = Partial<SubscriptionAttributes>;

/** The result of a change: the subscription after it, and whether it was switched on or off. */
export type SubscriptionChange = {
  subscription: WebhookSubscription;
  switchedTo: 'on' | 'off' | null;
};

/**
 * Applies changes. Returns undefined when nothing would change; then `updated_at` stays as well (HOOK-44).
 * @throws RejectedError when flat would not have exactly one named event
 */
export function changeSubscription(
  current: WebhookSubscription,
  changes: SubscriptionChanges,
  now: Date,
): SubscriptionChange | undefined {
  const { enabled = current.enabled, ...settings } = changes;
  const after = { ...current, ...settings };
  if (after.payloadFormat === 'flat' && getOnlyEvent(after.events) === null) {
    throw new RejectedError({ payload_format: ['flat needs exactly one named event'] });
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

/** Renders settings for the audit log, which is kept for ever: without parts of the URL that may be secret. */
export function toAuditedSettings(settings: SubscriptionAttributes): Record<string, unknown> {
  return { ...toFields(settings), target_url: maskUrl(settings.targetUrl) };
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
