import { isDeepStrictEqual } from 'node:util';
import { existing, unreachable, type Aggregate } from '#kernel/aggregate.js';
import { dayIn } from '#kernel/day.js';
import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';
import { mergeMetadata, metadataFault, type Metadata } from '#kernel/metadata.js';
import type {
  CustomerCreated,
  CustomerEvent,
  ExternalReference,
  PersonalFields,
} from './customer.events.js';

/** A member of a store's loyalty program. */
export type Customer = { id: number; accountId: number } & PersonalFields &
  Consents & {
    createdAt: string;
    updatedAt: string;
    /** Names and e-mail in folded case, for search: the database folds only ASCII. */
    searchText: string;
    phoneDigits: string | null;
  };

type Consents = { marketingConsent: boolean; smsConsent: boolean };

/** A reference as a caller gives it: metadata is merged into what is there. */
export type GivenReference = { source: string; externalId: string; metadata: Metadata };

/** What an update names. Metadata and references are added to what is there. */
export type CustomerChanges = Partial<
  Omit<PersonalFields, 'externalReferences'> & Consents & { externalReferences: GivenReference[] }
>;

/** Values that only one customer of a store may hold; the kinds are the names of the fields. */
export type UniqueValue = { kind: 'email' | 'phone' | 'external_references'; value: string };

const ERASED: PersonalFields = {
  firstName: 'Erased',
  lastName: null,
  email: null,
  phone: null,
  birthday: null,
  metadata: {},
  externalReferences: [],
};

/** Every change writes the whole list again, so it must stay small. */
const REFERENCES = { most: 100, bytes: 256 * 1024 };

export const customer: Aggregate<Customer, CustomerEvent> = {
  name: 'customer',
  foldVersion: 2,
  evolve(state, event) {
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
      case 'CustomerUpdated':
      case 'CustomerReferencesUpdated': {
        const { customerId: _, personal, ...consents } = event.data;
        const after = { ...existing(state), ...consents, ...personal, updatedAt: at };
        return { ...after, ...searchKeys(after) };
      }
      default:
        return unreachable(event);
    }
  },
};

/** @throws RejectedError when nothing to reach the person by is given, or more than can be kept */
export function createCustomer(
  data: Omit<CustomerCreated['data'], 'personal'> & {
    personal: Omit<PersonalFields, 'externalReferences'> & {
      externalReferences: GivenReference[];
    };
  },
  { timeZone, now }: { timeZone: string; now: Date },
): CustomerEvent[] {
  const { metadata, externalReferences, ...given } = data.personal;
  const personal = {
    ...given,
    metadata: mergeMetadata({}, metadata),
    externalReferences: upsertReferences([], externalReferences, now),
  };
  refuse(faultsOf(personal, { changed: personal, timeZone, now }));
  return [{ type: 'CustomerCreated', data: { ...data, personal } }];
}

/** Only what really changes is recorded; nothing changed is no event. */
export function updateCustomer(
  state: Customer | undefined,
  changes: CustomerChanges,
  { timeZone, now }: { timeZone: string; now: Date },
): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  const { marketingConsent, smsConsent, metadata, externalReferences, ...plain } = changes;
  const personal = changed<PersonalFields>(state, {
    ...plain,
    ...(metadata && { metadata: mergeMetadata(state.metadata, metadata) }),
    ...(externalReferences && {
      externalReferences: upsertReferences(state.externalReferences, externalReferences, now),
    }),
  });
  const consents = changed<Consents>(state, {
    ...(marketingConsent !== undefined && { marketingConsent }),
    ...(smsConsent !== undefined && { smsConsent }),
  });
  if (Object.keys({ ...personal, ...consents }).length === 0) return [];
  refuse(faultsOf({ ...state, ...personal }, { changed: personal, timeZone, now }));
  const customerId = state.id;
  const { externalReferences: references, ...told } = personal;
  if (references && Object.keys({ ...told, ...consents }).length === 0) {
    const data = { customerId, personal: { externalReferences: references } };
    return [{ type: 'CustomerReferencesUpdated', data }];
  }
  return [{ type: 'CustomerUpdated', data: { customerId, ...consents, personal } }];
}

/** What the events of a change make a customer's own, and what they give up. */
export function movedValues(
  before: PersonalFields | undefined,
  events: CustomerEvent[],
): { taken: UniqueValue[]; released: UniqueValue[] } {
  const changes = Object.assign({}, ...events.map(({ data }) => data.personal)) as object;
  const had = uniqueValues(before ?? ERASED);
  const has = uniqueValues({ ...(before ?? ERASED), ...changes });
  return { taken: without(has, had), released: without(had, has) };
}

function without(some: UniqueValue[], others: UniqueValue[]): UniqueValue[] {
  const known = new Set(others.map(({ kind, value }) => `${kind} ${value}`));
  return some.filter(({ kind, value }) => !known.has(`${kind} ${value}`));
}

function uniqueValues({ email, phone, externalReferences }: PersonalFields): UniqueValue[] {
  return [
    ...(email === null ? [] : [{ kind: 'email' as const, value: emailKey(email) }]),
    ...(phone === null ? [] : [{ kind: 'phone' as const, value: phone }]),
    ...externalReferences.map(({ source, externalId }) => ({
      kind: 'external_references' as const,
      value: JSON.stringify([source, externalId]),
    })),
  ];
}

/**
 * By source and external id; the same one twice is applied in turn. Never removes one. One that stays
 * as it is was not updated.
 */
export function upsertReferences(
  current: ExternalReference[],
  given: GivenReference[],
  now: Date,
): ExternalReference[] {
  const at = now.toISOString();
  const references = new Map(current.map((one) => [`${one.source} ${one.externalId}`, one]));
  for (const { source, externalId, metadata } of given) {
    const key = `${source} ${externalId}`;
    const known = references.get(key);
    const merged = mergeMetadata(known?.metadata ?? {}, metadata);
    if (known && isDeepStrictEqual(known.metadata, merged)) continue;
    references.set(key, {
      source,
      externalId,
      metadata: merged,
      createdAt: known?.createdAt ?? at,
      updatedAt: at,
    });
  }
  return [...references.values()].sort((a, b) =>
    a.source === b.source ? compare(a.externalId, b.externalId) : compare(a.source, b.source),
  );
}

function changed<T extends object>(current: T, wanted: Partial<T>): Partial<T> {
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => !isDeepStrictEqual(current[name as keyof T], value),
    ),
  ) as Partial<T>;
}

/** Of the person as a whole, and of what is new about them. All faults come together. */
function faultsOf(
  person: PersonalFields,
  {
    changed: { birthday, metadata, externalReferences },
    timeZone,
    now,
  }: { changed: Partial<PersonalFields>; timeZone: string; now: Date },
): FieldErrors {
  const errors: FieldErrors = {};
  if (person.email === null && person.phone === null) {
    errors['base'] = ['An e-mail address or a phone number is needed'];
  }
  if (birthday && birthday > dayIn(timeZone, now.getTime())) {
    errors['birthday'] = ['must not be in the future'];
  }
  const fault = metadata && metadataFault(metadata);
  if (fault) errors['metadata'] = [fault];
  const wrong = externalReferences && referencesFault(externalReferences);
  if (wrong) errors['external_references'] = [wrong];
  return errors;
}

function referencesFault(references: ExternalReference[]): string | undefined {
  for (const { source, externalId, metadata } of references) {
    const fault = metadataFault(metadata);
    if (fault) return `${source} ${externalId}: metadata ${fault}`;
  }
  if (references.length > REFERENCES.most) {
    return `must come to at most ${REFERENCES.most} for one customer`;
  }
  return Buffer.byteLength(JSON.stringify(references)) > REFERENCES.bytes
    ? 'must come to at most 256 KiB for one customer, metadata included'
    : undefined;
}

function refuse(errors: FieldErrors): void {
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * Two addresses are one when only their case differs. Not as far as `foldCase`: weiß@ and weiss@ may be
 * two people.
 */
function emailKey(email: string): string {
  return email.normalize('NFKC').toLowerCase();
}

/**
 * One way of writing everything that is to be found whatever its case or its accents' encoding. Upper
 * case first makes ß and ss the same, both lower sigmas, and the i with and without a dot.
 */
export function foldCase(text: string): string {
  return text
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll('ς', 'σ')
    .replaceAll('i\u0307', 'i');
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
