import type { PayloadFormat } from '#public-events/public-event.js';
import type { Queued } from './delivery-lane.js';

/** One event for one subscription, as it is taken from the queue. */
export type Delivery = Queued & {
  subscriptionId: number;
  accountId: number;
  eventSeq: number;
  eventId: string;
  type: string;
  payloadFormat: PayloadFormat;
  firstAttemptAt: Date | null;
  createdAt: Date;
  /** When it was to be sent. */
  dueAt: Date;
  /** Of one that a person asked for; 0 of all others. */
  redeliveryId: number;
};
