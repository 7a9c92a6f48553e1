import type { PayloadFormat } from '#public-events/public-event.js';
import type { QueuedDelivery } from './delivery-queue.js';

/** One event for one subscription, as taken from the queue. */
export type Delivery = QueuedDelivery & {
  subscriptionId: number;
  accountId: number;
  eventSeq: number;
  eventId: string;
  type: string;
  payloadFormat: PayloadFormat;
  firstAttemptAt: Date | null;
  createdAt: Date;
  /** When it was due. */
  dueAt: Date;
  /** The id of the redelivery that somebody asked for; 0 for all others. */
  redeliveryId: number;
};
