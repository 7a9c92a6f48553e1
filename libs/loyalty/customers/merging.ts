import { isDeepStrictEqual } from 'node:util';
import type { DomainEvent } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { findMetadataIssue } from '#platform/kernel/metadata.js';
import { createCustomerMergedError } from '#loyalty/stamping/card-holder.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import {
  assertNoIssues,
  MERGEABLE_FIELDS,
  type Customer,
  type Merge,
  type StoreRegion,
} from './customer.js';
import { CONSENT_FIELDS, CONSENT_KINDS, type Consents } from './consents.js';
import { createReferenceKey, findReferencesIssue, sortReferences } from './external-references.js';
import { isSamePhone, normalizePhone } from './contact.js';
import { moveBounce } from './email-bounces.js';
import { createEmailKey } from './search-keys.js';
import type {
  CustomerEvent,
  CustomerMerged,
  CustomerMergedAway,
  MergedCards,
  PersonalFields,
} from './customer.events.js';
import { locateIssue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

type Both = { survivor: CustomerEvent[]; other: CustomerEvent[] };

/**
 * Merges a customer into another one. The surviving customer keeps all that they have and takes what they lack. What is
 * not taken stays with the other customer, and so does the claim on it. Of two notations of one phone number the survivor
 * takes the one in E.164 format (CUST-64).
 */
export function mergeCustomers(survivor: Customer, other: Customer, cards: MergedCards): Both {
  assertPresent(survivor);
  assertPresent(other);
  const personal = findTransferred(other, survivor);
  const errors = {
    metadata: personal.metadata && findMetadataIssue(personal.metadata),
    external_references:
      personal.externalReferences && findReferencesIssue(personal.externalReferences),
  };
  assertNoIssues(
    Object.fromEntries(
      Object.entries(errors).flatMap(([name, error]) =>
        error ? [[name, [locateIssue('of both customers together ', error)]]] : [],
      ),
    ),
  );
  const { id: customerId } = survivor;
  return {
    survivor: [
      {
        type: 'CustomerMerged',
        data: {
          customerId,
          fromCustomerId: other.id,
          cards,
          ...narrowConsents(survivor, other, personal),
          personal,
        },
      },
      ...moveBounce(customerId, personal.email === undefined ? undefined : other.emailBounce),
    ],
    other: [
      {
        type: 'CustomerMergedAway',
        data: {
          customerId: other.id,
          intoCustomerId: customerId,
          personal: releaseTransferred(personal, survivor),
        },
      },
    ],
  };
}

/** @throws RejectedError */
function assertPresent({ id, erasedAt, mergedInto }: Customer): void {
  if (erasedAt !== null) throw createCustomerErasedError();
  if (mergedInto) throw createCustomerMergedError(id, mergedInto.customerId);
}

function findTransferred(other: Customer, survivor: Customer): Partial<PersonalFields> {
  const fields = MERGEABLE_FIELDS.filter(
    (name) =>
      (survivor[name] === null && other[name] !== null) ||
      (name === 'phone' && isItsE164Form(survivor.phone, other.phone)),
  );
  const metadata = { ...other.metadata, ...survivor.metadata };
  return {
    ...Object.fromEntries(fields.map((name) => [name, other[name]])),
    ...(!isDeepStrictEqual(metadata, survivor.metadata) && { metadata }),
    ...(other.externalReferences.length > 0 && {
      externalReferences: sortReferences([
        ...survivor.externalReferences,
        ...other.externalReferences,
      ]),
    }),
  };
}

/** Tells whether the digits on file are the other's number in E.164 format, in which every search looks for it. */
function isItsE164Form(digits: string | null, international: string | null): boolean {
  return (
    international?.startsWith('+') === true &&
    digits?.startsWith('+') === false &&
    isSamePhone(digits, international)
  );
}

/**
 * Narrows the consents of a customer, and never widens one: it does not extend to an address whose owner had not given
 * it, and waits for a link where that of the address did. A number in another notation is no new address.
 */
function narrowConsents(
  survivor: Customer,
  other: Customer,
  { email, phone }: Partial<PersonalFields>,
): Partial<Consents> {
  const hasNewPhone = phone !== undefined && survivor.phone === null;
  const address = email !== undefined || hasNewPhone;
  const narrowed = {
    ...(survivor.marketingConsent &&
      address &&
      !other.marketingConsent && { marketingConsent: false }),
    ...(survivor.smsConsent && hasNewPhone && !other.smsConsent && { smsConsent: false }),
  };
  const hasTaken = { marketing: email !== undefined, sms: hasNewPhone };
  const after = { ...survivor, ...narrowed };
  const unconfirmedConsents = CONSENT_KINDS.filter(
    (kind) =>
      after[CONSENT_FIELDS[kind]] &&
      (survivor.unconfirmedConsents.includes(kind) ||
        (hasTaken[kind] && other.unconfirmedConsents.includes(kind))),
  );
  const isSameList = isDeepStrictEqual(unconfirmedConsents, survivor.unconfirmedConsents);
  return { ...narrowed, ...(!isSameList && { unconfirmedConsents }) };
}

/**
 * Releases the values that only one customer may hold; the rest is copied. Two notations of one number change places,
 * so that both stay taken.
 */
function releaseTransferred(
  { email, phone, externalReferences }: Partial<PersonalFields>,
  survivor: Customer,
): Partial<PersonalFields> {
  return {
    ...(email !== undefined && { email: null }),
    ...(phone !== undefined && { phone: survivor.phone }),
    ...(externalReferences && { externalReferences: [] }),
  };
}

/** Merges are undone in reverse order, so that each finds what it has left. */
export function unmergeCustomers(
  survivor: Customer,
  other: Customer,
  region: Pick<StoreRegion, 'country'>,
): Both & { merge: Merge } {
  assertPresent(survivor);
  if (other.erasedAt !== null) throw createCustomerErasedError();
  const last = survivor.merges?.at(-1);
  const { mergedInto } = other;
  if (mergedInto?.customerId !== survivor.id || !last) {
    throw new RejectedError(
      { base: [ISSUES.customer_not_merged({ id: other.id, into: survivor.id })] },
      'validation_failed',
      'The merged_into of a customer names the one to unmerge it from.',
    );
  }
  if (last.customerId !== other.id) {
    throw new RejectedError(
      { base: [ISSUES.merged_later({ id: last.customerId, into: survivor.id })] },
      'validation_failed',
      `Merges are undone in reverse order: unmerge customer ${last.customerId} first.`,
    );
  }
  const { given: surrendered } = mergedInto;
  const back = splitReturned(
    last,
    survivor,
    { ...other, ...surrendered },
    { ...region, formerPhone: other.phone },
  );
  assertContact({ ...survivor, ...back.survivor });
  return {
    merge: last,
    survivor: [
      {
        type: 'CustomerUnmerged',
        data: { customerId: survivor.id, restoredCustomerId: other.id, personal: back.survivor },
      },
    ],
    other: [
      {
        type: 'CustomerRestored',
        data: {
          customerId: other.id,
          fromCustomerId: survivor.id,
          personal: Object.fromEntries(
            Object.keys(surrendered).map((name) => [
              name,
              back.other[name as keyof PersonalFields],
            ]),
          ),
        },
      },
      ...moveBounce(other.id, back.survivor.email === null ? survivor.emailBounce : undefined),
    ],
  };
}

/** @throws RejectedError if the survivor would be left without any */
function assertContact({ id, email, phone }: Customer): void {
  if (email !== null || phone !== null) return;
  throw new RejectedError(
    { base: [ISSUES.customer_without_contact({ id })] },
    'validation_failed',
    'Give that customer one of their own first.',
  );
}

/**
 * Splits what two customers had together. What was changed since the merge stays with the survivor, except references:
 * the other customer gets them as they are now. A phone number is given back in the form that it has in the store's
 * country now.
 * @param other as they were before the merge
 * @param formerPhone the survivor's number from before the merge, if the other customer holds it
 */
function splitReturned(
  { fields, metadataKeys, references }: Merge,
  survivor: Customer,
  other: Customer,
  { country, formerPhone }: Pick<StoreRegion, 'country'> & { formerPhone: string | null },
): { survivor: Partial<PersonalFields>; other: PersonalFields } {
  const untouched = fields.filter((name) => isSame(survivor, other, name));
  const metadata = { ...survivor.metadata };
  for (const key of metadataKeys) {
    if (isDeepStrictEqual(metadata[key], other.metadata[key])) delete metadata[key];
  }
  const theirs = new Set(references.map(createReferenceKey));
  const ownReferences = survivor.externalReferences.filter(
    (reference) => !theirs.has(createReferenceKey(reference)),
  );
  const now = new Map(
    survivor.externalReferences.map((reference) => [createReferenceKey(reference), reference]),
  );
  return {
    survivor: {
      ...Object.fromEntries(untouched.map((name) => [name, name === 'phone' ? formerPhone : null])),
      ...(!isDeepStrictEqual(metadata, survivor.metadata) && { metadata }),
      ...(ownReferences.length < survivor.externalReferences.length && {
        externalReferences: ownReferences,
      }),
    },
    other: {
      ...other,
      phone: other.phone === null ? null : (normalizePhone(other.phone, country) ?? other.phone),
      ...Object.fromEntries(untouched.map((name) => [name, survivor[name]])),
      externalReferences: other.externalReferences.map(
        (reference) => now.get(createReferenceKey(reference)) ?? reference,
      ),
    },
  };
}

/** Tells whether two values are the same. Two notations of one e-mail address or phone number are. */
function isSame(
  one: PersonalFields,
  other: PersonalFields,
  name: (typeof MERGEABLE_FIELDS)[number],
): boolean {
  const [a, b] = [one[name], other[name]];
  if (name === 'phone') return isSamePhone(a, b);
  return name === 'email' && a !== null && b !== null
    ? createEmailKey(a) === createEmailKey(b)
    : a === b;
}

/**
 * Decides again about a customer who was changed after the survivor had taken over their values: what is not the value
 * that was taken stays with them.
 */
export function decideMergedAway({
  plannedEvents,
  state,
  earlierEvents,
}: {
  plannedEvents: CustomerEvent[];
  state: Customer;
  earlierEvents: DomainEvent[];
}): CustomerEvent[] {
  const [event] = plannedEvents;
  if (event?.type === 'CustomerRestored') return plannedEvents;
  if (event?.type === 'CustomerErased') return [event];
  if (event?.type !== 'CustomerMergedAway')
    throw new Error(`${event?.type} is never decided again`);
  const merged = (earlierEvents as CustomerEvent[]).find(({ type }) => type === 'CustomerMerged');
  return [
    { ...event, data: { ...event.data, personal: findStillTransferred(event, state, merged) } },
  ];
}

function findStillTransferred(
  { data }: CustomerMergedAway,
  state: Customer,
  merged: CustomerEvent | undefined,
): Partial<PersonalFields> | null {
  const transferred = (merged as CustomerMerged | undefined)?.data.personal;
  if (!data.personal || !transferred) return data.personal;
  const { email, phone, externalReferences, ...rest } = data.personal;
  const theirs = new Set((transferred.externalReferences ?? []).map(createReferenceKey));
  const same = (name: 'email' | 'phone') => isSame(state, { ...state, ...transferred }, name);
  return {
    ...rest,
    ...(email === null && same('email') && { email }),
    ...(phone !== undefined && same('phone') && { phone }),
    ...(externalReferences && {
      externalReferences: state.externalReferences.filter(
        (reference) => !theirs.has(createReferenceKey(reference)),
      ),
    }),
  };
}
