import { isDeepStrictEqual } from 'node:util';
import { requireState, assertNever, type Aggregate } from '#kernel/aggregate.js';
import { getLocalDay } from '#kernel/day.js';
import { NotFoundError, RejectedError, type FieldErrors } from '#kernel/errors.js';
import { mergeMetadata, findMetadataError, type Metadata } from '#kernel/metadata.js';
import { customerMerged } from '#stamping/card-holder.js';
import { customerErased } from '#stamping/customer-subjects.js';
import { normalizeOrRefusePhone } from './contact.js';
import { withCardLinkRequest, type CardLinkRequest } from './card-links.js';
import { emailKey, NOT_FOUND, searchKeys, type SearchKeys } from './search-keys.js';
import type {
  CustomerCreated,
  CustomerEvent,
  ExternalReference,
  MergedCards,
  PersonalFields,
  ResealedPerson,
  Taken,
} from './customer.events.js';

/** A member of a store's loyalty program. */
export type Customer = { id: number; accountId: number } & PersonalFields &
  Consents &
  SearchKeys & {
    createdAt: string;
    updatedAt: string;
    erasedAt: string | null;
    /** Set while this customer is merged into another, with what that one took over. */
    mergedInto?: { customerId: number; given: Partial<PersonalFields> };
    /** Customers merged into this one, the last one last. */
    merges?: Merge[];
    /** Customers into whom this one was merged before: these may have values of this one in their history. */
    formerlyIn?: number[];
    /** Customers whose values stand in the history of this one, sealed with the key of this one. */
    holds?: number[];
    /** When somebody asked for the links of a card again, on the last day on which anybody did; oldest first. */
    cardLinkRequests?: CardLinkRequest[];
  };

/** What is needed to undo a merge. */
export type Merge = { customerId: number; cards: MergedCards } & Taken;

export const TAKEN_FIELDS = ['lastName', 'email', 'phone', 'birthday'] as const;

type Consents = { marketingConsent: boolean; smsConsent: boolean };

/** Where the store is, which determines its days and how phone numbers are read. */
export type Place = { timeZone: string; country: string | null };

/** A reference in a request: metadata is merged into the existing one. */
export type GivenReference = { source: string; externalId: string; metadata: Metadata };

/** The fields that an update names. Metadata and references are added to the existing ones. */
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

/** Every change rewrites the whole list, so it must stay small. */
const REFERENCES = { most: 100, bytes: 32 * 1024 };

export const customer: Aggregate<Customer, CustomerEvent> = {
  name: 'customer',
  names: {
    CustomerCreated: 'customer.created',
    CustomerUpdated: 'customer.updated',
    CustomerPhoneNormalized: 'customer.phone_normalized',
    CustomerReferencesUpdated: 'customer.references_updated',
    CardLinksRequested: 'customer.card_links_requested',
    // So that receivers learn of it.
    CustomerErased: 'customer.updated',
    CustomerMerged: 'customer.merged',
    CustomerMergedAway: 'customer.merged_away',
    CustomerUnmerged: 'customer.unmerged',
    CustomerRestored: 'customer.restored',
    CustomerResealed: 'customer.resealed',
  },
  projectionVersion: 7,
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
          erasedAt: null,
          ...searchKeys(personal ?? ERASED),
        };
      }
      case 'CustomerUpdated':
      case 'CustomerReferencesUpdated': {
        const { customerId: _, personal, ...consents } = event.data;
        return withPersonal({ ...requireState(state), ...consents }, personal, at);
      }
      case 'CustomerPhoneNormalized':
        return withPersonal(requireState(state), event.data.personal, at);
      case 'CardLinksRequested':
        return withCardLinkRequest(requireState(state), event.data.customerCardId, at);
      case 'CustomerErased':
        return { ...redacted(requireState(state)), updatedAt: at, erasedAt: at };
      case 'CustomerMerged': {
        const { customerId: _, fromCustomerId, cards, personal, ...consents } = event.data;
        const before = requireState(state);
        const merge = { customerId: fromCustomerId, cards, ...takenOver(before, personal ?? {}) };
        const merges = [...(before.merges ?? []), merge];
        const holds = together(before.holds, fromCustomerId);
        const after = { ...before, ...consents, ...personal, merges, holds, updatedAt: at };
        return { ...after, ...searchKeys(after) };
      }
      case 'CustomerMergedAway': {
        const { intoCustomerId: customerId, personal } = event.data;
        const before = requireState(state);
        const given = pick(before, Object.keys(personal ?? {}) as (keyof PersonalFields)[]);
        const mergedInto = { customerId, given };
        return { ...before, ...personal, ...NOT_FOUND, mergedInto, updatedAt: at };
      }
      case 'CustomerUnmerged': {
        const { merges = [], ...before } = requireState(state);
        return withPersonal({ ...before, merges: merges.slice(0, -1) }, event.data.personal, at);
      }
      case 'CustomerRestored': {
        const { mergedInto: _, ...before } = requireState(state);
        const formerlyIn = together(before.formerlyIn, event.data.fromCustomerId);
        return withPersonal({ ...before, formerlyIn }, event.data.personal, at);
      }
      case 'CustomerResealed':
        return resealed(requireState(state), event.data.personal);
      default:
        return assertNever(event);
    }
  },
};

/**
 * A customer without anything personal, consents included: nobody is left who could have given them. Found by no search,
 * not even by "Erased".
 */
export function redacted(state: Customer): Customer {
  const nothing = { marketingConsent: false, smsConsent: false, searchText: '', phoneDigits: null };
  const { mergedInto, merges } = state;
  return {
    ...state,
    ...ERASED,
    ...nothing,
    ...(mergedInto && { mergedInto: { ...mergedInto, given: {} } }),
    ...(merges && {
      merges: merges.map((merge) => ({ ...merge, fields: [], metadataKeys: [], references: [] })),
    }),
  };
}

/** A merged customer is changed without being found. */
function withPersonal(before: Customer, some: Partial<Customer> | null, at: string): Customer {
  const after = { ...before, ...some, updatedAt: at };
  return { ...after, ...(before.mergedInto ? NOT_FOUND : searchKeys(after)) };
}

/** Whatever the events before have said, because they cannot be read any more. */
function resealed(state: Customer, personal: ResealedPerson | null): Customer {
  const { mergedInto, merges } = state;
  const holds = merges?.map(({ customerId }) => customerId) ?? [];
  if (!personal) return { ...state, holds };
  const { given, taken, ...fields } = personal;
  const after = { ...state, ...fields, holds };
  return {
    ...after,
    ...(mergedInto ? NOT_FOUND : searchKeys(after)),
    ...(mergedInto && { mergedInto: { ...mergedInto, given } }),
    ...(merges && { merges: merges.map((merge, i) => ({ ...merge, ...taken[i] })) }),
  };
}

function together(ids: number[] = [], id: number): number[] {
  return ids.includes(id) ? ids : [...ids, id];
}

/** The fields, keys and references that a merge adds. */
function takenOver(before: Customer, personal: Partial<PersonalFields>): Taken {
  const had = new Set(before.externalReferences.map(referenceKey));
  return {
    fields: TAKEN_FIELDS.filter((name) => name in personal),
    metadataKeys: Object.keys(personal.metadata ?? {}).filter(
      (key) => !Object.hasOwn(before.metadata, key),
    ),
    references: (personal.externalReferences ?? [])
      .filter((reference) => !had.has(referenceKey(reference)))
      .map(({ source, externalId }) => ({ source, externalId })),
  };
}

function pick(from: PersonalFields, names: (keyof PersonalFields)[]): Partial<PersonalFields> {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

/** @throws RejectedError if there is neither e-mail nor phone, or more data than can be stored */
export function createCustomer(
  data: Omit<CustomerCreated['data'], 'personal'> & {
    personal: Omit<PersonalFields, 'externalReferences'> & {
      externalReferences: GivenReference[];
    };
  },
  { country, timeZone, now }: Place & { now: Date },
): CustomerEvent[] {
  const { metadata, externalReferences, phone, ...given } = data.personal;
  const personal = {
    ...given,
    phone: normalizeOrRefusePhone(phone, country),
    metadata: mergeMetadata({}, metadata),
    externalReferences: upsertReferences([], externalReferences, now),
  };
  refuse(faultsOf(personal, { changed: personal, timeZone, now }));
  return [{ type: 'CustomerCreated', data: { ...data, personal } }];
}

/** Erasing somebody again changes nothing. */
export function eraseCustomer(state: Customer | undefined): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) return [];
  return [{ type: 'CustomerErased', data: { customerId: state.id } }];
}

/** Records only actual changes; without any there is no event. */
export function updateCustomer(
  state: Customer | undefined,
  changes: CustomerChanges,
  { country, timeZone, now }: Place & { now: Date },
): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) throw customerErased();
  if (state.mergedInto) throw customerMerged(state.id, state.mergedInto.customerId);
  const { marketingConsent, smsConsent, metadata, externalReferences, phone, ...plain } = changes;
  const personal = changed<PersonalFields>(state, {
    ...plain,
    ...(phone !== undefined && {
      phone: normalizeOrRefusePhone(phone, country),
    }),
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

/** The unique values that a customer takes and releases with the events of a change. */
export function movedValues(
  before: PersonalFields | undefined,
  events: CustomerEvent[],
): { taken: UniqueValue[]; released: UniqueValue[] } {
  const personal = events.map(({ data }) => ('personal' in data ? data.personal : {}));
  const changes = Object.assign({}, ...personal) as object;
  const had = uniqueValues(before ?? ERASED);
  const has = uniqueValues({ ...(before ?? ERASED), ...changes });
  return { taken: without(has, had), released: without(had, has) };
}

function without(some: UniqueValue[], others: UniqueValue[]): UniqueValue[] {
  const known = new Set(others.map(({ kind, value }) => `${kind} ${value}`));
  return some.filter(({ kind, value }) => !known.has(`${kind} ${value}`));
}

export function uniqueValues({ email, phone, externalReferences }: PersonalFields): UniqueValue[] {
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
 * By source and external id; a duplicate in the request is applied in order. Never removes one. One that
 * does not change keeps its time of update.
 */
export function upsertReferences(
  current: ExternalReference[],
  given: GivenReference[],
  now: Date,
): ExternalReference[] {
  const at = now.toISOString();
  const references = new Map(current.map((one) => [referenceKey(one), one]));
  for (const { source, externalId, metadata } of given) {
    const key = referenceKey({ source, externalId });
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
  return sortedReferences([...references.values()]);
}

export function sortedReferences(references: ExternalReference[]): ExternalReference[] {
  return references.sort((a, b) =>
    a.source === b.source ? compare(a.externalId, b.externalId) : compare(a.source, b.source),
  );
}

export function referenceKey({
  source,
  externalId,
}: {
  source: string;
  externalId: string;
}): string {
  return `${source} ${externalId}`;
}

function changed<T extends object>(current: T, wanted: Partial<T>): Partial<T> {
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([name, value]) => !isDeepStrictEqual(current[name as keyof T], value),
    ),
  ) as Partial<T>;
}

/** Checks the customer as a whole and the new values; reports all errors at once. */
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
  if (birthday && birthday > getLocalDay(timeZone, now.getTime())) {
    errors['birthday'] = ['must not be in the future'];
  }
  const fault = metadata && findMetadataError(metadata);
  if (fault) errors['metadata'] = [fault];
  const wrong = externalReferences && referencesFault(externalReferences);
  if (wrong) errors['external_references'] = [wrong];
  return errors;
}

export function referencesFault(references: ExternalReference[]): string | undefined {
  for (const { source, metadata } of references) {
    const fault = findMetadataError(metadata);
    // Not by its id, which is personal: a refusal may be stored under an Idempotency-Key.
    if (fault) return `of ${source}: metadata ${fault}`;
  }
  if (references.length > REFERENCES.most) {
    return `must come to at most ${REFERENCES.most} for one customer`;
  }
  return Buffer.byteLength(JSON.stringify(references)) > REFERENCES.bytes
    ? 'must come to at most 32 KiB for one customer, metadata included'
    : undefined;
}

export function refuse(errors: FieldErrors): void {
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}

/** Of names that differ. */
function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}
