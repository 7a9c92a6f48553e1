import type { Body, PayloadFormat } from '#outbound/public-events/public-events.js';
import type { CustomHeaders } from '#outbound/sending/webhook-headers.js';
import type { DisabledReason } from '#outbound/subscriptions/webhook-subscription.js';

/** One event for one subscription, as loaded from its queue. */
export type Delivery = {
  id: number;
  subscriptionId: number;
  accountId: number;
  customerId: number;
  /** Of the event; empty for a redelivery, to which no order applies. */
  stream: string;
  eventSeq: number;
  eventId: string;
  type: string;
  payloadFormat: PayloadFormat;
  /** Scheduled attempts so far. */
  tries: number;
  /** Whether it is a redelivery that somebody asked for. */
  manual: boolean;
  firstAttemptAt: Date | null;
  createdAt: Date;
  dueAt: Date;
  /** 0 unless it is a redelivery. */
  redeliveryId: number;
  /** As of `readAt`, in milliseconds of `performance.now()`. */
  body: Body;
  readAt: number;
};

/** What its queue has to know of a delivery. */
export type QueuedDelivery = Pick<
  Delivery,
  'id' | 'customerId' | 'stream' | 'tries' | 'manual' | 'redeliveryId' | 'createdAt'
>;

/** Where a queue's deliveries go. */
export type Target = {
  url: string;
  /** Null when it cannot be decrypted. */
  secret: string | null;
  previousSecret: string | undefined;
  /** The store's own. Undefined: none; null when they cannot be decrypted. */
  headers: CustomHeaders | null | undefined;
  personalData: boolean;
  enabled: boolean;
  disabledReason: DisabledReason | null;
  giveUpBefore: Date | null;
  failingSince: Date | null;
};

/** The state of a queue in the database, as read a moment ago. */
export type QueueView = {
  subscriptionId: number;
  /** Raised by whoever adds work; a queue is not released while this shows work that is not known here. */
  enqueuedCount: number;
  hasRedelivery: boolean;
  /** Missing when the subscription was deleted. */
  target: Target | undefined;
};
