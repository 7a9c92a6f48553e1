import type { HolderChannel, MessageReason } from '#outbound/messages/message-channel.js';

/**
 * - queued: to be sent
 * - failed: refused by a server, or given up
 * - skipped: not sent, because no channel reaches the customer, or it is not due any more
 */
export const RECIPIENT_STATES = ['queued', 'sent', 'failed', 'skipped'] as const;
export type RecipientState = (typeof RECIPIENT_STATES)[number];

/**
 * - delivered, undelivered: by SMS, as the provider reported later
 * - pending: on the pass, but the server of Apple, Google or the browser has not accepted the update
 */
export const ARRIVALS = ['delivered', 'undelivered', 'pending'] as const;
export type Arrival = (typeof ARRIVALS)[number];

/** A message to one customer, as the store's users see it. */
export type MessageRecipient = {
  id: number;
  announcementId: number | null;
  ruleId: number | null;
  customerId: number;
  /** Null: they are no longer a customer. */
  customerName: string | null;
  customerCardId: number | null;
  state: RecipientState;
  channel: HolderChannel | null;
  reason: MessageReason | null;
  /** Null: nothing was reported. */
  arrival: Arrival | null;
  dueAt: Date | null;
  createdAt: Date;
  finishedAt: Date | null;
};

/** How many messages of a campaign have the arrival `pending`. */
export type PendingCounts = Partial<Record<HolderChannel, number>>;

/** What became of the messages of an announcement or a rule. */
export type MessageCounts = Record<RecipientState, number> & {
  sentBy: Record<HolderChannel, number>;
};

/**
 * A number of messages that were not sent, or not yet.
 * @property isRetry whether a server did not take them at an attempt
 * @property dueAt when the first of those is due that wait; null: they do not wait
 */
export type UnsentGroup = {
  state: Exclude<RecipientState, 'sent'>;
  reason: MessageReason | null;
  isRetry: boolean;
  count: number;
  dueAt: Date | null;
};

export const NO_MESSAGES: MessageCounts = {
  queued: 0,
  sent: 0,
  failed: 0,
  skipped: 0,
  sentBy: { wallet: 0, web_push: 0, email: 0, sms: 0 },
};

/** Counts messages whose arrival is pending as not sent yet. @param pending undefined: none is */
export function subtractPending<C extends { queued: number; sent: number }>(
  counts: C,
  pending: PendingCounts | undefined,
): C {
  const pendingCount = sumPending(pending);
  return {
    ...counts,
    queued: counts.queued + pendingCount,
    sent: counts.sent - pendingCount,
  };
}

export function sumPending(pending: PendingCounts = {}): number {
  return Object.values(pending).reduce((sum, count) => sum + count, 0);
}
