import type { HolderChannel, MessageReason } from '#outbound/messages/message-channel.js';

/**
 * - queued: to be sent
 * - failed: refused by a server, or given up
 * - skipped: not sent, because no channel reaches the customer, or it is not due any more
 */
export const RECIPIENT_STATES = ['queued', 'sent', 'failed', 'skipped'] as const;
export type RecipientState = (typeof RECIPIENT_STATES)[number];

/** A message to one customer, as the store's users see it. */
export type MessageRecipient = {
  id: number;
  announcementId: number | null;
  ruleId: number | null;
  customerId: number;
  /** Null: they were erased. */
  customerName: string | null;
  customerCardId: number | null;
  state: RecipientState;
  channel: HolderChannel | null;
  reason: MessageReason | null;
  dueAt: Date | null;
  createdAt: Date;
  finishedAt: Date | null;
};

/** What became of the messages of an announcement or a rule. */
export type MessageCounts = Record<RecipientState, number> & {
  sentBy: Record<HolderChannel, number>;
};

export const NO_MESSAGES: MessageCounts = {
  queued: 0,
  sent: 0,
  failed: 0,
  skipped: 0,
  sentBy: { wallet: 0, web_push: 0, email: 0, sms: 0 },
};
