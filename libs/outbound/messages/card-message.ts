import type { CardLinksRequested, CustomerCreated } from '#loyalty/customers/customer.events.js';
import { SAME_REQUEST_MS } from '#loyalty/customers/card-links.js';
import type { CustomerCardIssued } from '#loyalty/stamping/customer-card.events.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { judgeSmsNumber } from './sms-destination.js';

export type MessageChannel = 'email' | 'sms';

/**
 * - queued: to be sent
 * - held: not sent by itself; a user may send it later
 * - sent: accepted by the mail server or the SMS provider
 * - failed: refused, or given up
 * - dropped: there is nobody to send it to
 */
export type CardMessageState = 'queued' | 'held' | 'sent' | 'failed' | 'dropped';

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
  /** The customer's current name. */
  customer: string;
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
        const { customerId, sendCardLinks } = event.data as CustomerCreated['data'];
        if (sendCardLinks) requests.push(toMessageRequest(event, customerId, null));
        break;
      }
      case 'CustomerCardIssued': {
        const { customerId, id } = event.data as CustomerCardIssued['data'];
        const waiting = requests.find(
          (one) => one.customerId === customerId && one.customerCardId === null,
        );
        if (waiting) waiting.customerCardId = id;
        else if (!issued.has(customerId)) issued.set(customerId, id);
        break;
      }
      case 'CardLinksRequested': {
        const { customerId, customerCardId } = event.data as CardLinksRequested['data'];
        const request = toMessageRequest(event, customerId, customerCardId);
        if (!requests.some((one) => isRepeat(request, one))) requests.push(request);
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
  customerId: number,
  customerCardId: number | null,
): MessageRequest {
  return {
    id,
    accountId: meta.accountId,
    customerId,
    customerCardId,
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

/** The current addresses of a customer. @property hasBounced whether an e-mail to the address came back */
export type Contact = { email: string | null; phone: string | null; hasBounced?: boolean };

/** Why a message is not sent. A country that the store sends no SMS to stands behind: ISO 3166-1 alpha-2. */
export type UnsentReason =
  | 'erased'
  | 'no_address'
  | 'bounced'
  | 'no_country_code'
  | 'number_without_sms'
  | 'mail_not_set_up'
  | 'sms_not_set_up'
  | 'phone_not_entered'
  | 'too_many_signups'
  | 'too_many_emails'
  | 'too_many_sms'
  | 'too_many_to_address'
  | `country_not_allowed ${string}`;

export type Route =
  | { kind: 'send'; channel: MessageChannel; to: string }
  /** No channel can reach the customer now. */
  | { kind: 'hold'; channel: MessageChannel; reason: UnsentReason }
  | { kind: 'drop'; reason: UnsentReason };

/**
 * The channels that are set up.
 * @property smsCountries the countries that the store sends SMS to, ISO 3166-1 alpha-2
 */
export type Channels = Record<MessageChannel, boolean> & { smsCountries: readonly string[] };

/**
 * Chooses the channel of a message: e-mail first. SMS go to phones of people in the store's countries only.
 * @param mailRefused the mail server does not know the address
 */
export function chooseRoute(
  { email, phone, hasBounced = false }: Contact,
  channels: Channels,
  mailRefused: boolean,
): Route {
  const byMail = mailRefused || hasBounced ? null : email;
  if (byMail !== null && channels.email) return { kind: 'send', channel: 'email', to: byMail };
  const bySms = phone === null ? null : routeBySms(phone, channels);
  if (bySms?.kind === 'send') return bySms;
  if (byMail !== null) return { kind: 'hold', channel: 'email', reason: 'mail_not_set_up' };
  return bySms ?? { kind: 'drop', reason: hasBounced ? 'bounced' : 'no_address' };
}

function routeBySms(phone: string, { sms, smsCountries }: Channels): Route {
  if (!phone.startsWith('+')) return { kind: 'drop', reason: 'no_country_code' };
  const destination = judgeSmsNumber(phone, smsCountries);
  switch (destination.kind) {
    case 'allowed':
      return sms
        ? { kind: 'send', channel: 'sms', to: phone }
        : { kind: 'hold', channel: 'sms', reason: 'sms_not_set_up' };
    case 'foreign':
      return { kind: 'hold', channel: 'sms', reason: `country_not_allowed ${destination.country}` };
    case 'unsuitable':
      return { kind: 'drop', reason: 'number_without_sms' };
  }
}
