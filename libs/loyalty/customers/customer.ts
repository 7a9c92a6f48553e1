import { isDeepStrictEqual } from 'node:util';
import {
  requireState,
  assertNever,
  defineAggregate,
  type RecordedEvent,
} from '#platform/kernel/aggregate.js';
import { getLocalDay } from '#platform/kernel/zoned-time.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { mergeMetadata, findMetadataIssue } from '#platform/kernel/metadata.js';
import { createCustomerMergedError } from '#loyalty/stamping/card-holder.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import { normalizeOptionalPhone } from './contact.js';
import { getPhoneKey } from './phone-plans.js';
import {
  createReferenceKey,
  findReferencesIssue,
  upsertReferences,
  type ReferenceInput,
} from './external-references.js';
import { findUnconfirmed, withConfirmed, type Consents } from './consents.js';
import { withCardLinkRequest, type CardLinkRequest } from './card-links.js';
import { rememberMessage } from './customer-messages.js';
import { withoutBounce, withoutFormerBounce, type EmailState } from './email-bounces.js';
import {
  createEmailKey,
  NO_SEARCH_KEYS,
  createSearchKeys,
  type SearchKeys,
} from './search-keys.js';
import {
  customerEvents,
  type CustomerCreated,
  type CustomerEvent,
  type MergedCards,
  type PersonalFields,
  type PosterSignup,
  type ResealedPerson,
  type MergeAdditions,
} from './customer.events.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** A member of a store's loyalty program. */
export type Customer = { id: number; accountId: number } & PersonalFields &
  Consents &
  SearchKeys &
  Omit<EmailState, 'email'> & {
    createdAt: string;
    updatedAt: string;
    erasedAt: string | null;
    /** Set while this customer is merged into another, with what the survivor took over. */
    mergedInto?: { customerId: number } & Pick<ResealedPerson, 'given'>;
    /** Customers merged into this one, the last one last. */
    merges?: Merge[];
    /** Customers into whom this one was merged before: these may have values of this one in their history. */
    formerlyIn?: number[];
    /** Customers whose values stand in the history of this one, sealed with the key of this one. */
    holds?: number[];
    /** Set if they signed up themselves. */
    signup?: PosterSignup;
    /** When somebody asked for the links of a card again, on the last day on which anybody did; oldest first. */
    cardLinkRequests?: CardLinkRequest[];
    /** The last messages that the store sent them, newest last. */
    messageIds?: string[];
  };

/** Holds the data to undo a merge. */
export type Merge = { customerId: number; cards: MergedCards } & MergeAdditions;

export const MERGEABLE_FIELDS = ['lastName', 'email', 'phone', 'birthday'] as const;

/** The time zone and country of the store, which determine its days and how phone numbers are read. */
export type StoreRegion = { timeZone: string; country: string | null };

/** @property needsConsentLink a consent holds once it was confirmed by a link that went to the address or number */
export type ConsentRule = { needsConsentLink?: boolean };

/** The fields that an update names. Metadata and references are added to the existing ones. */
export type CustomerChanges = Partial<
  Omit<PersonalFields, 'externalReferences'> &
    Omit<Consents, 'unconfirmedConsents'> & { externalReferences: ReferenceInput[] }
>;

/** Values that only one customer of a store may hold; the kinds are the names of the fields. */
export type UniqueCustomerValue = {
  kind: 'email' | 'phone' | 'external_references';
  value: string;
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

export const customer = defineAggregate<Customer, CustomerEvent>({
  name: 'customer',
  table: 'customers',
  events: customerEvents,
  evolve: (state, event) => withoutFormerBounce(state, applyEvent(state, event)),
});

function applyEvent(state: Customer | undefined, event: RecordedEvent<CustomerEvent>): Customer {
  const at = event.meta.recordedAt;
  switch (event.type) {
    case 'CustomerCreated':
      return createState(event.data, at);
    case 'CustomerUpdated':
    case 'CustomerReferencesUpdated': {
      const { customerId: _, personal, ...consents } = event.data;
      return withPersonal({ ...requireState(state), ...consents }, personal, at);
    }
    case 'CustomerConsentConfirmed':
      return { ...withConfirmed(requireState(state), event.data.consent), updatedAt: at };
    case 'CustomerPhoneNormalized':
      return withPersonal(requireState(state), event.data.personal, at);
    case 'CardLinksRequested':
      return withCardLinkRequest(requireState(state), event.data.customerCardId, at);
    case 'CustomerMessaged':
      return rememberMessage(requireState(state), event.data.messageId);
    case 'CustomerEmailBounced': {
      const { customerId: _, ...emailBounce } = event.data;
      return { ...requireState(state), emailBounce };
    }
    case 'CustomerEmailRetried':
      return { ...withoutBounce(requireState(state)), emailRetriedAt: at };
    case 'CustomerErased':
      return { ...redact(requireState(state)), updatedAt: at, erasedAt: at };
    case 'CustomerMerged': {
      const { customerId: _, fromCustomerId, cards, personal, ...consents } = event.data;
      const before = requireState(state);
      const additions = findAdditions(before, personal ?? {});
      const merge = { customerId: fromCustomerId, cards, ...additions };
      const merges = [...(before.merges ?? []), merge];
      const holds = addId(before.holds, fromCustomerId);
      const after = { ...before, ...consents, ...personal, merges, holds, updatedAt: at };
      return { ...after, ...createSearchKeys(after) };
    }
    case 'CustomerMergedAway': {
      const { intoCustomerId: customerId, personal } = event.data;
      const before = requireState(state);
      const names = Object.keys(personal ?? {}) as (keyof PersonalFields)[];
      const mergedInto = { customerId, given: pickFields(before, names) };
      return { ...before, ...personal, ...NO_SEARCH_KEYS, mergedInto, updatedAt: at };
    }
    case 'CustomerUnmerged': {
      const { merges = [], ...before } = requireState(state);
      return withPersonal({ ...before, merges: merges.slice(0, -1) }, event.data.personal, at);
    }
    case 'CustomerRestored': {
      const { mergedInto: _, ...before } = requireState(state);
      const formerlyIn = addId(before.formerlyIn, event.data.fromCustomerId);
      return withPersonal({ ...before, formerlyIn }, event.data.personal, at);
    }
    case 'CustomerResealed':
      return reseal(requireState(state), event.data.personal);
    default:
      return assertNever(event);
  }
}

function createState(data: CustomerCreated['data'], at: string): Customer {
  const { customerId, accountId, marketingConsent, smsConsent, signup, personal } = data;
  const { unconfirmedConsents } = data;
  return {
    id: customerId,
    accountId,
    ...(personal ?? ERASED),
    marketingConsent,
    smsConsent,
    unconfirmedConsents,
    createdAt: at,
    updatedAt: at,
    erasedAt: null,
    ...createSearchKeys(personal ?? ERASED),
    ...(signup && { signup }),
  };
}

/**
 * Removes everything personal from a customer, consents included: nobody is left who could have given them. No search
 * finds the result, not even one for "Erased".
 */
export function redact(state: Customer): Customer {
  const nothing = {
    marketingConsent: false,
    smsConsent: false,
    unconfirmedConsents: [],
    ...NO_SEARCH_KEYS,
  };
  const { mergedInto, merges, emailRetriedAt: _, ...others } = withoutBounce(state);
  return {
    ...others,
    ...ERASED,
    ...nothing,
    ...(mergedInto && { mergedInto: { ...mergedInto, given: {} } }),
    ...(merges && {
      merges: merges.map((merge) => ({ ...merge, fields: [], metadataKeys: [], references: [] })),
    }),
  };
}

/** Changes personal fields. A merged customer stays hidden from search. */
function withPersonal(before: Customer, some: Partial<Customer> | null, at: string): Customer {
  const after = { ...before, ...some, updatedAt: at };
  return { ...after, ...(before.mergedInto ? NO_SEARCH_KEYS : createSearchKeys(after)) };
}

/**
 * Replaces all personal data, because the events before it cannot be decrypted any more. Nor can be told whose address
 * bounced, so the next event says so again.
 */
function reseal(before: Customer, personal: ResealedPerson | null): Customer {
  const state = withoutBounce(before);
  const { mergedInto, merges } = state;
  const holds = merges?.map(({ customerId }) => customerId) ?? [];
  if (!personal) return { ...state, holds };
  const { given: surrendered, taken: additions, ...fields } = personal;
  const after = { ...state, ...fields, holds };
  return {
    ...after,
    ...(mergedInto ? NO_SEARCH_KEYS : createSearchKeys(after)),
    ...(mergedInto && { mergedInto: { ...mergedInto, given: surrendered } }),
    ...(merges && { merges: merges.map((merge, i) => ({ ...merge, ...additions[i] })) }),
  };
}

function addId(ids: number[] = [], id: number): number[] {
  return ids.includes(id) ? ids : [...ids, id];
}

/** Finds the fields, keys and references that a merge adds. */
function findAdditions(before: Customer, personal: Partial<PersonalFields>): MergeAdditions {
  const had = new Set(before.externalReferences.map(createReferenceKey));
  return {
    fields: MERGEABLE_FIELDS.filter((name) => name in personal),
    metadataKeys: Object.keys(personal.metadata ?? {}).filter(
      (key) => !Object.hasOwn(before.metadata, key),
    ),
    references: (personal.externalReferences ?? [])
      .filter((reference) => !had.has(createReferenceKey(reference)))
      .map(({ source, externalId }) => ({ source, externalId })),
  };
}

function pickFields(
  from: PersonalFields,
  names: (keyof PersonalFields)[],
): Partial<PersonalFields> {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

/** @throws RejectedError if there is neither e-mail nor phone, or more data than can be stored */
export function createCustomer(
  data: Omit<CustomerCreated['data'], 'personal' | 'unconfirmedConsents'> & {
    personal: Omit<PersonalFields, 'externalReferences'> & {
      externalReferences: ReferenceInput[];
    };
  },
  { country, timeZone, now, needsConsentLink = false }: StoreRegion & ConsentRule & { now: Date },
): CustomerEvent[] {
  const { metadata, externalReferences, phone, ...fields } = data.personal;
  const personal = {
    ...fields,
    phone: normalizeOptionalPhone(phone, country),
    metadata: mergeMetadata({}, metadata),
    externalReferences: upsertReferences([], externalReferences, now),
  };
  assertNoIssues(findIssues(personal, { changed: personal, timeZone, now }));
  const unconfirmedConsents = findUnconfirmed(undefined, data, needsConsentLink);
  return [{ type: 'CustomerCreated', data: { ...data, unconfirmedConsents, personal } }];
}

/** Erases a customer. Erasing them again changes nothing. */
export function eraseCustomer(state: Customer | undefined): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) return [];
  return [{ type: 'CustomerErased', data: { customerId: state.id } }];
}

/** Updates the record with an event of the actual changes; without any there is no event. */
export function updateCustomer(
  state: Customer | undefined,
  changes: CustomerChanges,
  { country, timeZone, now, needsConsentLink = false }: StoreRegion & ConsentRule & { now: Date },
): CustomerEvent[] {
  if (!state) throw new NotFoundError('Customer');
  if (state.erasedAt !== null) throw createCustomerErasedError();
  if (state.mergedInto) throw createCustomerMergedError(state.id, state.mergedInto.customerId);
  const { marketingConsent, smsConsent, metadata, externalReferences, phone, ...plain } = changes;
  const personal = pickChanged<PersonalFields>(state, {
    ...plain,
    ...(phone !== undefined && {
      phone: normalizeOptionalPhone(phone, country),
    }),
    ...(metadata && { metadata: mergeMetadata(state.metadata, metadata) }),
    ...(externalReferences && {
      externalReferences: upsertReferences(state.externalReferences, externalReferences, now),
    }),
  });
  const consentChanges = {
    ...(marketingConsent !== undefined && { marketingConsent }),
    ...(smsConsent !== undefined && { smsConsent }),
  };
  const unconfirmedConsents = findUnconfirmed(
    state,
    { ...state, ...consentChanges },
    needsConsentLink,
  );
  const consents = pickChanged<Consents>(state, { ...consentChanges, unconfirmedConsents });
  if (Object.keys({ ...personal, ...consents }).length === 0) return [];
  assertNoIssues(findIssues({ ...state, ...personal }, { changed: personal, timeZone, now }));
  const customerId = state.id;
  const { externalReferences: references, ...otherFields } = personal;
  if (references && Object.keys({ ...otherFields, ...consents }).length === 0) {
    const data = { customerId, personal: { externalReferences: references } };
    return [{ type: 'CustomerReferencesUpdated', data }];
  }
  return [{ type: 'CustomerUpdated', data: { customerId, ...consents, personal } }];
}

/** Finds the unique values that a customer claims and releases with the events of a change. */
export function findMovedValues(
  before: PersonalFields | undefined,
  events: CustomerEvent[],
): { added: UniqueCustomerValue[]; released: UniqueCustomerValue[] } {
  const personal = events.map(({ data }) => ('personal' in data ? data.personal : {}));
  const changes = Object.assign({}, ...personal) as object;
  const had = listUniqueValues(before ?? ERASED);
  const has = listUniqueValues({ ...(before ?? ERASED), ...changes });
  return { added: subtract(has, had), released: subtract(had, has) };
}

function subtract(
  some: UniqueCustomerValue[],
  others: UniqueCustomerValue[],
): UniqueCustomerValue[] {
  const keys = new Set(others.map(({ kind, value }) => `${kind} ${value}`));
  return some.filter(({ kind, value }) => !keys.has(`${kind} ${value}`));
}

export function listUniqueValues({
  email,
  phone,
  externalReferences,
}: PersonalFields): UniqueCustomerValue[] {
  return [
    ...(email === null ? [] : [{ kind: 'email' as const, value: createEmailKey(email) }]),
    ...(phone === null ? [] : [{ kind: 'phone' as const, value: getPhoneKey(phone) }]),
    ...externalReferences.map(({ source, externalId }) => ({
      kind: 'external_references' as const,
      value: JSON.stringify([source, externalId]),
    })),
  ];
}

function pickChanged<T extends object>(current: T, changes: Partial<T>): Partial<T> {
  return Object.fromEntries(
    Object.entries(changes).filter(
      ([name, value]) => !isDeepStrictEqual(current[name as keyof T], value),
    ),
  ) as Partial<T>;
}

/** Checks the customer as a whole and the new values; reports all errors at once. */
function findIssues(
  person: PersonalFields,
  {
    changed: { birthday, metadata, externalReferences },
    timeZone,
    now,
  }: { changed: Partial<PersonalFields>; timeZone: string; now: Date },
): FieldIssues {
  const errors: FieldIssues = {};
  if (person.email === null && person.phone === null) {
    errors['base'] = [ISSUES.contact_missing];
  }
  if (birthday && birthday > getLocalDay(timeZone, now.getTime())) {
    errors['birthday'] = [ISSUES.in_future];
  }
  const metadataError = metadata && findMetadataIssue(metadata);
  if (metadataError) errors['metadata'] = [metadataError];
  const referencesError = externalReferences && findReferencesIssue(externalReferences);
  if (referencesError) errors['external_references'] = [referencesError];
  return errors;
}

export function assertNoIssues(errors: FieldIssues): void {
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
}
