import type { CardLinksRequested, CustomerCreated } from '#loyalty/customers/customer.events.js';
import { SAME_REQUEST_MS } from '#loyalty/customers/card-links.js';
import type { CustomerCardIssued } from '#loyalty/stamping/customer-card.events.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import type { MessageChannel } from './message-channel.js';

/**
 * What the outbox shows:
 * - queued: to be sent
 * - held: not sent by itself; a user may send it later
 * - sent: accepted by the mail server or the SMS provider
 * - failed: refused, or given up
 * - dropped: there is nobody to send it to
 */
export type CardMessageState = 'queued' | 'held' | 'sent' | 'failed' | 'dropped';

/** SQL of the condition that a card link `m` waits for a user to send it. */
export const IS_HELD = `m.state = 'queued' and m.due_at is null and m.reason is not null`;

/** SQL of the state of a card link `m`, see `CardMessageState`. */
export const CARD_MESSAGE_STATE = `case when m.state = 'skipped' then 'dropped' when ${IS_HELD} then 'held' else m.state end`;

/** A message as the users of its store see it. */
export type OutboxEntry = {
  id: string;
  state: CardMessageState;
  channel: MessageChannel;
  requestedAt: Date;
  finishedAt: Date | null;
  /** The time of the next attempt. */
  dueAt: Date | null;
  attempts: number;
  /** An `UnsentReason` while it is held or dropped, else what a server said; null: nothing went wrong. */
  reason: string | null;
  providerId: string | null;
  /** The later report of the SMS provider; null: none. @property code the provider's error code */
  arrival: { arrived: boolean; code: number | null } | null;
  /** The customer's current name; null once they are no longer one. */
  customer: string | null;
};

/** A message as it would be sent now. */
export type MessagePreview = { to: string | null; subject: string | null; text: string };

/** A request for a message with the links of a card. */
export type MessageRequest = {
  /** The id of the event and of the message, so that the same one is never enqueued twice. */
  id: string;
  accountId: number;
  customerId: number;
  /** Null: the card that is about to be issued. */
  customerCardId: number | null;
  at: Date;
  /** What has caused it, such as a signup; null where one command did it all. */
  causationId: string | null;
  /** Whether a consent to SMS waits for its link, as far as the event tells. */
  asksForSms: boolean;
};

/** The first card that a batch of events issues to a customer. */
export type IssuedCard = { customerId: number; customerCardId: number };

/** After this time nobody waits for the links any more. */
export const MESSAGE_REQUEST_TTL_MS = 3 * 24 * 60 * 60_000;

/** Finds the message requests in a batch of events. Leaves out a request that repeats one of the same batch. */
export function findMessageRequests(events: StoredEvent[]): {
  requests: MessageRequest[];
  issued: IssuedCard[];
} {
  const requests: MessageRequest[] = [];
  const issued = new Map<number, number>();
  for (const event of events) {
    switch (event.type) {
      case 'CustomerCreated': {
        const {
          customerId,
          sendCardLinks,
          unconfirmedConsents = [],
        } = event.data as Partial<CustomerCreated['data']> & { customerId: number };
        const asksForSms = unconfirmedConsents.includes('sms');
        if (sendCardLinks) requests.push(toMessageRequest(event, { customerId, asksForSms }));
        break;
      }
      case 'CustomerCardIssued': {
        const { customerId, id } = event.data as CustomerCardIssued['data'];
        const waiting = requests.find(
          (request) => request.customerId === customerId && request.customerCardId === null,
        );
        if (waiting) waiting.customerCardId = id;
        else if (!issued.has(customerId)) issued.set(customerId, id);
        break;
      }
      case 'CardLinksRequested': {
        const { customerId, customerCardId } = event.data as CardLinksRequested['data'];
        const request = toMessageRequest(event, { customerId, customerCardId });
        if (!requests.some((earlier) => isRepeat(request, earlier))) requests.push(request);
        break;
      }
      default:
    }
  }
  return {
    requests,
    issued: [...issued].map(([customerId, customerCardId]) => ({ customerId, customerCardId })),
  };
}

function toMessageRequest(
  { id, meta }: StoredEvent,
  {
    customerId,
    customerCardId = null,
    asksForSms = false,
  }: { customerId: number; customerCardId?: number | null; asksForSms?: boolean },
): MessageRequest {
  return {
    id,
    accountId: meta.accountId,
    customerId,
    customerCardId,
    asksForSms,
    at: new Date(meta.recordedAt),
    causationId: meta.causationId ?? null,
  };
}

function isRepeat(later: MessageRequest, earlier: MessageRequest): boolean {
  return (
    later.customerCardId === earlier.customerCardId &&
    later.at.getTime() - earlier.at.getTime() < SAME_REQUEST_MS
  );
}
