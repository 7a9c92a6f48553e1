/** The published names. Values may be added, but never removed. */
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

/** The whole envelope, or only its `data`. */
export type PayloadFormat = 'envelope' | 'flat';
