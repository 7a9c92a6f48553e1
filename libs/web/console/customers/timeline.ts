import type {
  CustomerConsentConfirmed,
  CustomerMessaged,
} from '#loyalty/customers/customer.events.js';
import { isMovedInMerge } from '#loyalty/history/explanation.js';
import type { Translations } from '#translations/translations.js';
import type { IconName } from '#web/pages/icons.js';

type Texts = Translations['customerPages']['timeline'];

/** An entry of the history, with the names of what it is about. */
export type TimelineEntry = {
  /** As in `stamp.earned`. */
  name: string;
  stamps: number | null;
  source: string | null;
  /** The data of the event, in the shape that its type has now; null when the event is lost. */
  data: object | null;
  /** The name of the card or location that the event is one of; its data may lack it. */
  subject: string | null;
  /** Whether an import of another programme's stamps wrote it. */
  isImport: boolean;
  isReversal: boolean;
  isReversed: boolean;
};

export type TimelineActor = { type: string; name: string | null };

/** The events that a reversal can undo. */
const REVERSIBLE = new Set(['stamp.earned', 'stamp.removed', 'reward.redeemed']);
const ICONS: readonly (readonly [prefix: string, icon: IconName])[] = [
  ['stamp.removed', 'pencil'],
  ['stamp.', 'stamp'],
  ['reward.', 'gift'],
  ['customer_card.', 'wallet-cards'],
  ['card.', 'wallet-cards'],
  ['customer.messaged', 'mail'],
  ['customer.', 'users'],
  ['location.', 'map-pin'],
  ['poster.', 'printer'],
];
/** The fields of an event about a customer, by the names that a reader knows. */
const CUSTOMER_FIELDS: Readonly<Record<string, keyof Texts['fields']>> = {
  firstName: 'first_name',
  lastName: 'last_name',
  email: 'email',
  phone: 'phone',
  birthday: 'birthday',
  metadata: 'metadata',
  externalReferences: 'external_references',
  marketingConsent: 'marketing_consent',
  smsConsent: 'sms_consent',
};

/** Describes what happened in the words of a shop. */
export function describeEntry(entry: TimelineEntry, t: Texts): string {
  const { name, stamps, source, data, subject, isImport } = entry;
  const count = Math.abs(stamps ?? 0);
  if (name === 'stamp.earned') {
    if (source === 'welcome_bonus') return t.names.welcome({ count });
    if (isMovedInMerge(entry)) return t.names.movedIn({ count });
    if (source === 'adjustment') {
      return (isImport ? t.names.imported : t.names.credited)({ count });
    }
    return t.names.earned({ count });
  }
  if (name === 'stamp.removed') {
    return (isMovedInMerge(entry) ? t.names.movedOut : t.names.removed)({ count });
  }
  const kind = Object.hasOwn(t.kinds, name) ? t.kinds[name as keyof Texts['kinds']] : name;
  if (data === null) return kind;
  const title = findText(data, 'rewardName') ?? findText(data, 'name') ?? subject;
  switch (name) {
    case 'reward.unlocked':
      return t.names.unlocked({ reward: title ?? '' });
    case 'reward.redeemed':
      return t.names.redeemed({ reward: title ?? '', count });
    case 'customer.updated':
      return describeCustomerChange(data, t);
    case 'customer.consent_confirmed': {
      const { consent } = data as CustomerConsentConfirmed['data'];
      return t.names.withName({ what: kind, name: t.fields[`${consent}_consent`] });
    }
    case 'customer.messaged':
      return describeMessage(data as CustomerMessaged['data'], t);
    default:
      return title === null ? kind : t.names.withName({ what: kind, name: title });
  }
}

/** Describes the balance that an entry left. @param full the stamps that fill the card */
export function describeBalanceAfter(balance: number, full: number, t: Texts): string {
  return balance > full
    ? t.balanceAfter({ count: balance })
    : t.balanceOf({ have: balance, need: full });
}

/** Finds the icon that tells kinds of entries apart at a glance. */
export function findIcon({ name, source, isReversal }: TimelineEntry): IconName {
  if (isReversal) return 'undo-2';
  if (source === 'adjustment') return 'pencil';
  const [, icon] = ICONS.find(([prefix]) => name.startsWith(prefix)) ?? [];
  return icon ?? 'settings';
}

/** Describes a message of the store. Its title is gone once the customer is erased. */
function describeMessage({ channel, personal }: CustomerMessaged['data'], t: Texts): string {
  if (personal === null) return t.kinds['customer.messaged'];
  return t.names.messaged({ channel: t.channels[channel], title: personal.title });
}

/** Describes a change, also an erasure: that is published as a change without anything about the person. */
function describeCustomerChange(data: object, t: Texts): string {
  if (!('personal' in data)) return t.names.erased;
  const { personal, ...rest } = data as { personal: object | null };
  const fields = Object.keys({ ...personal, ...rest }).flatMap((field) => {
    const key = CUSTOMER_FIELDS[field];
    return key === undefined ? [] : [t.fields[key]];
  });
  return fields.length === 0
    ? t.kinds['customer.updated']
    : t.names.changed({ fields: fields.join(', ') });
}

/** Names who did it. Nobody at a shop knows the operator's account on the server. */
export function describeAuthor(
  { type, name }: TimelineActor,
  staffRef: string | null,
  t: Texts,
): string {
  const actor = describeAuthorAlone({ type, name }, t);
  return staffRef === null ? actor : `${staffRef}, ${actor}`;
}

function describeAuthorAlone({ type, name }: TimelineActor, t: Texts): string {
  if (type === 'token') return t.token({ name: name ?? '' });
  if (type === 'admin_token') return t.operator;
  if (type === 'system') return name === null ? t.inkpad : t.operator;
  if (type === 'customer') return t.customer;
  return name ?? t.somebody;
}

/** Tells whether an entry can be undone; the command decides in the end. */
export function isUndoable(entry: TimelineEntry): boolean {
  const { name, isReversal, isReversed } = entry;
  return REVERSIBLE.has(name) && !isReversal && !isReversed && !isMovedInMerge(entry);
}

export function findText(data: object, name: string): string | null {
  const value: unknown = Reflect.get(data, name);
  return typeof value === 'string' ? value : null;
}
