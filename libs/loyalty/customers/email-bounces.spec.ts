import { expect, it } from '@jest/globals';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { customer, eraseCustomer, updateCustomer, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';
import { isBounceStatus, recordBounce, retryEmail, type ReturnedEmail } from './email-bounces.js';
import { mergeCustomers, unmergeCustomers } from './merging.js';
import { resealCustomer } from './resealing.js';

const NOW = new Date('2026-03-02T12:00:00.000Z');
const NOBODY = { moved: [], added: [] };
const REGION = { country: null, timeZone: 'UTC', now: NOW };

const customerCreated = (customerId: number, email: string | null): CustomerEvent => ({
  type: 'CustomerCreated',
  data: {
    customerId,
    accountId: 1,
    source: 'api',
    marketingConsent: true,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
    signup: null,
    unconfirmedConsents: [],
    personal: {
      firstName: 'Anna',
      lastName: null,
      email,
      phone: '+4915112345678',
      birthday: null,
      metadata: {},
      externalReferences: [],
    },
  },
});
const returned = (fields: Partial<ReturnedEmail> = {}): ReturnedEmail => ({
  messageId: 'a',
  status: '5.1.1',
  address: 'Anna@x.example',
  sentAt: new Date(AT),
  ...fields,
});
const BOUNCE = { messageId: 'a', status: '5.1.1', bouncedAt: NOW.toISOString() };
const bounced = (customerId: number): CustomerEvent => ({
  type: 'CustomerEmailBounced',
  data: { customerId, ...BOUNCE },
});
const anna = (...events: CustomerEvent[]) =>
  scenario(customer, customerCreated(7, 'anna@x.example'), ...events);
const stateOf = (...events: CustomerEvent[]): Customer => scenario(customer, ...events).state();

it('records the first e-mail that comes back', () => {
  anna()
    .when((state) => recordBounce(state, returned(), NOW))
    .then(bounced(7));
  expect(anna(bounced(7)).state().emailBounce).toEqual(BOUNCE);
  anna(bounced(7))
    .when((state) => recordBounce(state, returned({ messageId: 'b' }), NOW))
    .then();
});

it('records nothing about an address that the customer does not have', () => {
  anna()
    .when((state) => recordBounce(state, returned({ address: 'otto@x.example' }), NOW))
    .then();
  scenario(customer, customerCreated(7, null))
    .when((state) => recordBounce(state, returned(), NOW))
    .then();
  expect(() => recordBounce(undefined, returned(), NOW)).toThrow(NotFoundError);
});

it('forgets the bounce when the address is tried again, and e-mails from before that', () => {
  anna(bounced(7))
    .when(retryEmail)
    .then({ type: 'CustomerEmailRetried', data: { customerId: 7 } });
  anna().when(retryEmail).then();
  const retried = anna(bounced(7), { type: 'CustomerEmailRetried', data: { customerId: 7 } });
  expect(retried.state().emailBounce).toBeUndefined();
  retried.when((state) => recordBounce(state, returned(), NOW)).then();
  retried.when((state) => recordBounce(state, returned({ sentAt: NOW }), NOW)).then(bounced(7));
});

it('tries no address of nobody, of somebody erased, or of somebody merged into another', () => {
  expect(() => retryEmail(undefined)).toThrow(NotFoundError);
  const erased = anna(bounced(7), ...eraseCustomer(anna().state()));
  erased.when(retryEmail).thenThrows(RejectedError);
  const merged = mergeCustomers(stateOf(customerCreated(8, null)), anna().state(), NOBODY);
  anna(...merged.other)
    .when(retryEmail)
    .thenThrows(RejectedError);
});

it('forgets the bounce with the address, but not with another notation of it', () => {
  const change = (email: string) =>
    anna(bounced(7), ...updateCustomer(anna(bounced(7)).state(), { email }, REGION)).state();
  expect(change('anna@y.example').emailBounce).toBeUndefined();
  expect(change('ANNA@x.example').emailBounce).toEqual(BOUNCE);
  const erased = anna(bounced(7), ...eraseCustomer(anna().state())).state();
  expect(erased).not.toHaveProperty('emailBounce');
});

it('moves the bounce with the address when customers are merged, and back', () => {
  const other = [customerCreated(7, 'anna@x.example'), bounced(7)];
  const survivor = [customerCreated(8, null)];
  const merge = mergeCustomers(stateOf(...survivor), stateOf(...other), NOBODY);
  const merged = stateOf(...survivor, ...merge.survivor);
  expect(merged.emailBounce).toEqual(BOUNCE);
  const away = stateOf(...other, ...merge.other);
  expect(away.emailBounce).toBeUndefined();
  const undone = unmergeCustomers(merged, away, REGION);
  expect(stateOf(...survivor, ...merge.survivor, ...undone.survivor).emailBounce).toBeUndefined();
  expect(stateOf(...other, ...merge.other, ...undone.other).emailBounce).toEqual(BOUNCE);
});

it('keeps the bounce of an own address in a merge', () => {
  const other = stateOf(customerCreated(7, 'otto@x.example'), bounced(7));
  const survivor = [customerCreated(8, 'anna@x.example')];
  const merge = mergeCustomers(stateOf(...survivor), other, NOBODY);
  expect(stateOf(...survivor, ...merge.survivor).emailBounce).toBeUndefined();
});

it.each([
  ['the address that bounced', [bounced(7)]],
  ['another one since', [bounced(7), ...changedTo('anna@y.example')]],
])('tells the same of a customer whose former key is destroyed: %s', (_, events) => {
  const live = anna(...events);
  const resealed = resealCustomer(live.state());
  const destroyed = [customerCreated(7, 'anna@x.example'), ...events].map(
    (event) => ({ ...event, data: { ...event.data, personal: null } }) as CustomerEvent,
  );
  expect(stateOf(...destroyed, ...resealed).emailBounce).toEqual(live.state().emailBounce);
});

it.each([
  ['5.1.1', true],
  ['5.1.10', true],
  ['5.2.1', true],
  ['5.1.8', false],
  ['5.2.2', false],
  ['5.7.1', false],
  ['4.1.1', false],
  [undefined, false],
])('tells whether %s is for good', (status, expected) => {
  expect(isBounceStatus(status)).toBe(expected);
});

function changedTo(email: string): CustomerEvent[] {
  return [{ type: 'CustomerUpdated', data: { customerId: 7, personal: { email } } }];
}
