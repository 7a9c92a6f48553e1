import { isDeepStrictEqual } from 'node:util';
import type { EventMeta } from '#platform/kernel/aggregate.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import type { EventTypes } from '#platform/event-store/port/event-types.js';
import {
  customerEvents,
  type CustomerEvent,
  type PersonalFields,
} from '#loyalty/customers/customer.events.js';
import {
  customerCardEvents,
  type CustomerCardEvent,
} from '#loyalty/stamping/customer-card.events.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';

/** The published names. Values may be added, but never removed. */
export const PUBLIC_EVENTS = [
  'customer.created',
  'customer.updated',
  'customer_card.created',
  'stamp.earned',
  'stamp.removed',
  'reward.unlocked',
  'reward.redeemed',
  'card.created',
  'card.updated',
  'card.archived',
  'card.unarchived',
  'reward.created',
  'reward.updated',
  'reward.deleted',
  'location.created',
  'location.updated',
  'location.deleted',
  'poster.created',
  'poster.updated',
  'poster.deleted',
  'store.updated',
] as const;

export type PublicEventType = (typeof PUBLIC_EVENTS)[number];

/** The whole envelope, or only its `data`. */
export type PayloadFormat = 'envelope' | 'flat';

/** An event as receivers get it: all of it as `envelope`, only `data` as `flat`. */
export type PublicEvent = {
  id: string;
  type: PublicEventType;
  timestamp: string;
  /** Of two events about one record the one with the higher number is the later; timestamps may be equal. */
  sequence: number;
  account_id: number;
  data: object;
  /** In customer.updated: the whole old value of each field that changed. */
  previous_attributes?: object;
};

type PublishedTypes<T extends string> = Readonly<
  Record<T, { readonly publishedAs: string | null }>
>;

type Recorded<E> = E & { id: string; revision: number; meta: EventMeta };

/** A customer before and after the event, as JSON of the API. */
export type CustomerSubject = { customer: CustomerShape; before: CustomerShape | undefined };

/** The fields whose old values are published. */
const PUBLISHED_FIELDS = [
  'first_name',
  'last_name',
  'email',
  'phone',
  'birthday',
  'metadata',
  'marketing_consent',
  'sms_consent',
  'unconfirmed_consents',
] as const;

type CustomerShape = { [name in (typeof PUBLISHED_FIELDS)[number]]: unknown };

/** A customer card as the event left it; the names of other records are those at the time of rendering. */
export type CustomerCardSubject = {
  state: CustomerCard;
  cardName: string;
  /** The JSON of lists and of single records in the API. */
  list: { stamps_remaining: number };
  detail: () => object;
  customer: CustomerName;
};

export type CustomerName = {
  id: number;
  first_name: string;
  last_name: string | null;
  email: string | null;
  phone: string | null;
};

type Unpublished<T> = { [K in keyof T]: T[K] extends { publishedAs: null } ? K : never }[keyof T];

/** The published events. Events without a visible change, or of external references only, are not published. */
export type PublishedCustomerEvent = Exclude<
  CustomerEvent,
  { type: Unpublished<typeof customerEvents> }
>;

/** The published events. A merge of cards is published by the events of their stamps and customers. */
export type PublishedCustomerCardEvent = Exclude<
  CustomerCardEvent,
  { type: Unpublished<typeof customerCardEvents> }
>;

/** Finds the published type of an event. Undefined when it is not published. */
export function findPublicType(types: EventTypes, storedType: string): PublicEventType | undefined {
  const publishedAs = types.findPublishedType(storedType);
  return PUBLIC_EVENTS.find((type) => type === publishedAs);
}

export function toPublicCustomerEvent(
  event: Recorded<PublishedCustomerEvent>,
  { customer, before }: CustomerSubject,
): PublicEvent {
  switch (event.type) {
    case 'CustomerCreated':
      return toEnvelope(event, customerEvents, { ...customer, source: event.data.source });
    // Receivers with a copy have to learn of it, but the erased values are not published.
    case 'CustomerErased':
      return { ...toEnvelope(event, customerEvents, customer), previous_attributes: {} };
    case 'CustomerUpdated':
    case 'CustomerConsentConfirmed':
    case 'CustomerPhoneNormalized':
    case 'CustomerMerged':
    case 'CustomerMergedAway':
    case 'CustomerUnmerged':
    case 'CustomerRestored': {
      if (!before) throw new Error(`event ${event.id} changes a customer that did not exist`);
      const changedFields = PUBLISHED_FIELDS.filter(
        (name) => !isDeepStrictEqual(before[name], customer[name]),
      );
      const previous = Object.fromEntries(changedFields.map((name) => [name, before[name]]));
      return {
        ...toEnvelope(event, customerEvents, customer),
        previous_attributes: previous,
      };
    }
  }
}

export function toPublicCustomerCardEvent(
  event: Recorded<PublishedCustomerCardEvent>,
  subject: CustomerCardSubject,
): PublicEvent {
  switch (event.type) {
    case 'CustomerCardIssued':
      return toEnvelope(event, customerCardEvents, {
        ...subject.detail(),
        customer: subject.customer,
      });
    case 'StampsEarned':
    case 'StampsRemoved': {
      const { stamps, source, locationId, staffRef, externalRef, personal } = event.data;
      return toEnvelope(event, customerCardEvents, {
        ...toReferences(subject),
        stamps,
        stamps_count: subject.state.stampsCount,
        stamps_remaining: subject.list.stamps_remaining,
        source,
        occurred_at: event.meta.occurredAt,
        location_id: locationId,
        staff_ref: staffRef,
        external_ref: externalRef,
        // The reason of a correction is for the store's own staff.
        note: source === 'adjustment' ? null : (personal?.note ?? null),
        customer: subject.customer,
        customer_card: subject.list,
      });
    }
    case 'RewardUnlocked': {
      const { rewardId, name, description, stampsRequired } = event.data;
      return toEnvelope(event, customerCardEvents, {
        ...toReferences(subject),
        stamps_count: subject.state.stampsCount,
        reward: { id: rewardId, name, description, stamps_required: stampsRequired },
        customer: subject.customer,
      });
    }
    case 'RewardRedeemed': {
      const { redemptionId, rewardId, rewardName, stampsSpent, personal } = event.data;
      const { locationId, staffRef, externalRef } = event.data;
      return toEnvelope(event, customerCardEvents, {
        id: redemptionId,
        reward_id: rewardId,
        reward_name: rewardName,
        stamps_spent: stampsSpent,
        // In a redemption this is the remaining balance, as in the response to redeem.
        stamps_remaining: subject.state.stampsCount,
        redeemed_at: event.meta.occurredAt,
        external_ref: externalRef,
        staff_ref: staffRef,
        location_id: locationId,
        note: personal?.note ?? null,
        occurred_at: event.meta.occurredAt,
        ...toReferences(subject),
        customer: subject.customer,
      });
    }
  }
}

/**
 * Renders an event about a record that is not a customer's.
 * @param events of its aggregate
 * @param json the record as the API shows it
 */
export function toPublicRecordEvent<T extends string>(
  event: Recorded<{ type: T }>,
  events: PublishedTypes<T>,
  json: object,
): PublicEvent {
  return toEnvelope(event, events, json);
}

export const TEST_EVENT = 'webhook.test';

/** Renders the event of a test, which is not recorded but has the format of one. */
export function renderTestEnvelope(
  id: string,
  subscription: { id: number; account_id: number },
  now: Date,
): string {
  return JSON.stringify({
    id,
    type: TEST_EVENT,
    timestamp: now.toISOString(),
    account_id: subscription.account_id,
    data: {
      subscription_id: subscription.id,
      message:
        'This is a test. If you can read it and its signature is right, deliveries will work.',
    },
  });
}

/**
 * The envelope of an event as bytes. `missing`: the event's partition was dropped. `unrendered`: it could not be read or
 * rendered just now.
 */
export type Body = Buffer | 'missing' | 'unrendered';

/** The names in an event of what an erasure removes. */
const PERSONAL_FIELDS: Record<keyof PersonalFields | 'note', string> = {
  firstName: 'first_name',
  lastName: 'last_name',
  email: 'email',
  phone: 'phone',
  birthday: 'birthday',
  metadata: 'metadata',
  externalReferences: 'external_references',
  note: 'note',
};

type Fields = Record<string, unknown>;
type ParsedEnvelope = {
  type: PublicEventType;
  data: Fields & { customer?: Fields };
  previous_attributes?: Fields;
};

/** The bodies made of an envelope, for as long as it is in memory: every attempt and every subscription needs the same. */
const variants = new WeakMap<Buffer, Map<string, Buffer>>();

/**
 * Formats the body of an event for a subscription, once for each envelope. Only the envelope is stored; `flat` is
 * extracted from it.
 * @param withPersonalData if false, every personal field of a customer is null
 */
export function formatBody(
  envelope: Buffer,
  format: PayloadFormat,
  withPersonalData: boolean,
): Buffer {
  if (format === 'envelope' && withPersonalData) return envelope;
  const formatted = variants.get(envelope) ?? new Map<string, Buffer>();
  variants.set(envelope, formatted);
  const variant = `${format} ${withPersonalData}`;
  const body = formatted.get(variant) ?? formatVariant(envelope, format, withPersonalData);
  formatted.set(variant, body);
  return body;
}

function formatVariant(envelope: Buffer, format: PayloadFormat, withPersonalData: boolean): Buffer {
  const parsed = JSON.parse(envelope.toString()) as ParsedEnvelope;
  // The e-mail address and phone number of a store are what it shows to its customers.
  if (!withPersonalData && parsed.type !== 'store.updated') {
    const { data, previous_attributes: previous } = parsed;
    for (const fields of [data, data.customer, previous]) if (fields) clearPersonalFields(fields);
  }
  return Buffer.from(JSON.stringify(format === 'envelope' ? parsed : parsed.data));
}

/** Keys that are absent stay absent: `previous_attributes` still tells what has changed. */
function clearPersonalFields(fields: Fields): void {
  for (const name of Object.values(PERSONAL_FIELDS)) if (name in fields) fields[name] = null;
}

function toReferences({ state, cardName }: CustomerCardSubject) {
  return {
    customer_id: state.customerId,
    customer_card_id: state.id,
    card_id: state.cardId,
    card_name: cardName,
  };
}

function toEnvelope<T extends string>(
  { id, type, revision, meta }: Recorded<{ type: T }>,
  events: PublishedTypes<T>,
  data: object,
): PublicEvent {
  return {
    id: toPublicEventId(id),
    type: assertPublicType(type, events[type].publishedAs),
    timestamp: meta.recordedAt,
    sequence: revision,
    account_id: meta.accountId,
    data,
  };
}

function assertPublicType(stored: string, publishedAs: string | null): PublicEventType {
  const publicType = PUBLIC_EVENTS.find((type) => type === publishedAs);
  if (publicType === undefined) throw new Error(`${stored} is not a published event`);
  return publicType;
}
