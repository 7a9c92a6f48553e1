import { unreachable, type Aggregate } from '#kernel/aggregate.js';
import { RejectedError } from '#kernel/errors.js';
import type {
  CustomerCreated,
  CustomerEvent,
  ExternalReference,
  Metadata,
  PersonalFields,
} from './customer.events.js';

/** A member of a store's loyalty program. */
export type Customer = { id: number; accountId: number } & PersonalFields & {
    marketingConsent: boolean;
    smsConsent: boolean;
    createdAt: string;
    updatedAt: string;
    /** Names and e-mail in folded case, for search: the database folds only ASCII. */
    searchText: string;
    phoneDigits: string | null;
  };

const ERASED: PersonalFields = {
  firstName: 'Erased',
  lastName: null,
  email: null,
  phone: null,
  birthday: null,
  metadata: {},
  externalReferences: [],
};

export const customer: Aggregate<Customer, CustomerEvent> = {
  name: 'customer',
  foldVersion: 1,
  evolve(_state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'CustomerCreated': {
        const { customerId, accountId, marketingConsent, smsConsent, personal } = event.data;
        return {
          id: customerId,
          accountId,
          ...(personal ?? ERASED),
          marketingConsent,
          smsConsent,
          createdAt: at,
          updatedAt: at,
          ...searchKeys(personal ?? ERASED),
        };
      }
      default:
        return unreachable(event.type);
    }
  },
};

export function createCustomer(
  data: Omit<CustomerCreated['data'], 'personal'> & { personal: PersonalFields },
): CustomerEvent[] {
  if (data.personal.email === null && data.personal.phone === null) {
    throw new RejectedError({ base: ['An e-mail address or a phone number is needed'] });
  }
  return [{ type: 'CustomerCreated', data }];
}

/** A card that is archived or over takes nobody new (contract section 4). */
export function refuseEnrolment(
  card: { archivedAt: string | null; expiresAt: string | null },
  now: Date,
): void {
  if (card.archivedAt !== null) throw new RejectedError({ card_id: ['is archived'] });
  if (card.expiresAt !== null && new Date(card.expiresAt) <= now) {
    throw new RejectedError({ card_id: ['has expired'] });
  }
}

/** By source and external id; the same one twice is applied in turn. Never removes one. */
export function upsertReferences(
  current: ExternalReference[],
  given: { source: string; externalId: string; metadata: Metadata }[],
  now: Date,
): ExternalReference[] {
  const at = now.toISOString();
  const references = new Map(current.map((one) => [`${one.source} ${one.externalId}`, one]));
  for (const { source, externalId, metadata } of given) {
    const key = `${source} ${externalId}`;
    const known = references.get(key);
    references.set(key, {
      source,
      externalId,
      metadata: mergeMetadata(known?.metadata ?? {}, metadata),
      createdAt: known?.createdAt ?? at,
      updatedAt: at,
    });
  }
  return [...references.values()].sort((a, b) =>
    a.source === b.source ? compare(a.externalId, b.externalId) : compare(a.source, b.source),
  );
}

/** Shallow: a null removes its key. */
export function mergeMetadata(current: Metadata, given: Metadata): Metadata {
  return Object.fromEntries(
    Object.entries({ ...current, ...given }).filter(([, value]) => value !== null),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** One way of writing everything that is to be found whatever its case or accents' encoding. */
export function foldCase(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

export function digitsOf(phone: string): string {
  return phone.replaceAll(/\D/g, '');
}

function searchKeys(personal: PersonalFields): Pick<Customer, 'searchText' | 'phoneDigits'> {
  const { firstName, lastName, email, phone } = personal;
  const names = [firstName, lastName].filter((name) => name !== null).join(' ');
  return {
    searchText: foldCase([names, email ?? ''].join('\n')),
    phoneDigits: phone === null ? null : digitsOf(phone),
  };
}
