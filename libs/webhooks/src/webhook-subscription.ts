/** Published: values may be added, never removed. */
export const PUBLIC_EVENTS = [
  'customer.created',
  'customer.updated',
  'customer_card.created',
  'stamp.earned',
  'stamp.removed',
  'reward.unlocked',
  'reward.redeemed',
] as const;

export type PublicEventType = (typeof PUBLIC_EVENTS)[number];

export const EVERY_EVENT = '*';

export type PayloadFormat = 'envelope' | 'flat';

export type DisabledReason = 'disabled_by_user' | 'failing' | 'blocked_address';

/** A URL and the events that it is sent. The signing secret is kept apart from it, sealed. */
export type WebhookSubscription = {
  id: number;
  accountId: number;
  /** Names, or only `*`. */
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

/** What the callers of a write may say about a subscription. */
export type SubscriptionAttributes = Pick<
  WebhookSubscription,
  'events' | 'targetUrl' | 'description' | 'payloadFormat' | 'enabled'
>;

/** The one event of a subscription that has exactly one (document section 2.3). */
export function onlyEvent(events: readonly string[]): string | null {
  const [first, ...others] = events;
  return first === undefined || first === EVERY_EVENT || others.length > 0 ? null : first;
}

export function wants(events: readonly string[], type: string): boolean {
  return events.includes(type) || events.includes(EVERY_EVENT);
}
