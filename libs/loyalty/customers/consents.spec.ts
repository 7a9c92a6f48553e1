import { describe, expect, it } from '@jest/globals';
import { scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { confirmConsent, findUnconfirmed } from './consents.js';
import { customer, updateCustomer, type Customer } from './customer.js';
import type { ConsentKind, CustomerEvent, PersonalFields } from './customer.events.js';
import { mergeCustomers } from './merging.js';

const NOW = new Date('2026-03-02T12:00:00.000Z');
const REGION = { country: null, timeZone: 'UTC', now: NOW };
const NOBODY = { moved: [], added: [] };

const created = (
  customerId: number,
  unconfirmedConsents: ConsentKind[],
  contact: Partial<PersonalFields> = {},
): CustomerEvent => ({
  type: 'CustomerCreated',
  data: {
    customerId,
    accountId: 1,
    source: 'poster',
    marketingConsent: true,
    smsConsent: true,
    sendCardLinks: true,
    agreed: null,
    signup: null,
    unconfirmedConsents,
    personal: {
      firstName: 'Anna',
      lastName: null,
      email: 'Anna@x.example',
      phone: '+4915112345678',
      birthday: null,
      metadata: {},
      externalReferences: [],
      ...contact,
    },
  },
});
const anna = (...events: CustomerEvent[]) =>
  scenario(customer, created(7, ['marketing', 'sms']), ...events);
const stateOf = (...events: CustomerEvent[]): Customer => scenario(customer, ...events).state();
const confirmed = (consent: ConsentKind): CustomerEvent => ({
  type: 'CustomerConsentConfirmed',
  data: { customerId: 7, consent },
});

describe('confirmConsent', () => {
  it('confirms each consent once, by the address or number that it is about', () => {
    const email = { kind: 'marketing', address: 'anna@x.example' } as const;
    anna()
      .when((state) => confirmConsent(state, email))
      .then(confirmed('marketing'));
    anna()
      .when((state) => confirmConsent(state, { kind: 'sms', address: '+4915112345678' }))
      .then(confirmed('sms'));
    expect(anna(confirmed('marketing')).state()).toMatchObject({ unconfirmedConsents: ['sms'] });
    anna(confirmed('marketing'))
      .when((state) => confirmConsent(state, email))
      .then();
    for (const other of [
      { kind: 'marketing', address: 'other@x.example' },
      { kind: 'marketing', address: '+4915112345678' },
      { kind: 'sms', address: 'anna@x.example' },
    ] as const) {
      anna()
        .when((state) => confirmConsent(state, other))
        .then();
    }
  });
});

describe('findUnconfirmed', () => {
  it('lets only a consent wait that is given now, and forgets one that is withdrawn', () => {
    const none = { marketingConsent: false, smsConsent: false, unconfirmedConsents: [] };
    const both = { marketingConsent: true, smsConsent: true };
    expect(findUnconfirmed(undefined, both, true)).toEqual(['marketing', 'sms']);
    expect(findUnconfirmed(undefined, both, false)).toEqual([]);
    expect(findUnconfirmed({ ...none, marketingConsent: true }, both, true)).toEqual(['sms']);
    const waiting = { ...both, unconfirmedConsents: ['sms'] as ConsentKind[] };
    expect(findUnconfirmed(waiting, both, false)).toEqual(['sms']);
    expect(findUnconfirmed(waiting, { ...both, smsConsent: false }, true)).toEqual([]);
  });

  it('leaves a consent as it is in other changes, also to the address', () => {
    anna()
      .when((state) => updateCustomer(state, { marketingConsent: true, smsConsent: true }, REGION))
      .then();
    expect(
      anna({
        type: 'CustomerUpdated',
        data: { customerId: 7, personal: { email: 'new@x.example' } },
      }).state().unconfirmedConsents,
    ).toEqual(['marketing', 'sms']);
  });
});

it('keeps in a merge what waits, and takes it over with an address', () => {
  const merge = (survivor: Customer, other: Customer) => {
    const [event] = mergeCustomers(survivor, other, NOBODY).survivor;
    return event?.type === 'CustomerMerged' ? event.data.unconfirmedConsents : null;
  };
  const byPhone = (list: ConsentKind[]) => stateOf(created(1, list, { email: null }));
  const byEmail = (list: ConsentKind[]) => stateOf(created(2, list, { phone: null }));
  expect(merge(byPhone([]), byEmail(['marketing']))).toEqual(['marketing']);
  expect(merge(byPhone([]), byEmail([]))).toBeUndefined();
  expect(merge(byPhone(['sms']), byEmail(['marketing', 'sms']))).toEqual(['marketing', 'sms']);
  // The survivor keeps an address of their own, and what is confirmed of it.
  const other = stateOf(created(3, ['marketing', 'sms'], { email: 'b@x.example', phone: '+491' }));
  expect(merge(stateOf(created(4, [])), other)).toBeUndefined();
});

it('forgets with an erasure what waited', () => {
  expect(anna({ type: 'CustomerErased', data: { customerId: 7 } }).state()).toMatchObject({
    marketingConsent: false,
    unconfirmedConsents: [],
  });
});
