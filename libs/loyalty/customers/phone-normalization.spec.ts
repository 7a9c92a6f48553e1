import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { customer, findMovedValues, type Customer } from './customer.js';
import type { CustomerCreated, CustomerEvent } from './customer.events.js';
import { normalizeCustomerPhone } from './phone-normalization.js';

const customerCreated = (phone: string | null): CustomerCreated => ({
  type: 'CustomerCreated',
  data: {
    customerId: 3,
    accountId: 1,
    source: 'api',
    marketingConsent: true,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
    signup: null,
    unconfirmedConsents: [],
    personal: {
      firstName: 'Ada',
      lastName: null,
      email: 'ada@x.example',
      phone,
      birthday: null,
      metadata: {},
      externalReferences: [],
    },
  },
});

describe('normalizeCustomerPhone', () => {
  const phoneNormalized = (phone: string, country: string | null): CustomerEvent => ({
    type: 'CustomerPhoneNormalized',
    data: { customerId: 3, country, personal: { phone } },
  });
  const normalize = (country: string | null) => (state: Customer | undefined) =>
    normalizeCustomerPhone(state, { country });

  it('records the number as normalized for the country, and the country', () => {
    scenario(customer, customerCreated('01711234567'))
      .when(normalize('DE'))
      .then(phoneNormalized('+491711234567', 'DE'));
    scenario(customer, customerCreated('01711234567'))
      .when(normalize('DE'))
      .thenState({ phone: '+491711234567', phoneDigits: '491711234567', email: 'ada@x.example' });
  });

  it.each([null, 'MX', 'DE'])(
    'modernizes a number of an older plan in a store of %s',
    (country) => {
      scenario(customer, customerCreated('+5215512345678'))
        .when(normalize(country))
        .then(phoneNormalized('+525512345678', country));
    },
  );

  it('records nothing when there is nothing to normalize', () => {
    const event = phoneNormalized('+491711234567', 'DE');
    scenario(customer, customerCreated('01711234567'), event).when(normalize('DE')).then();
    // A second change of country: the number is international already.
    scenario(customer, customerCreated('01711234567'), event).when(normalize('AT')).then();
    for (const phone of ['+436641234567', '12', null]) {
      scenario(customer, customerCreated(phone)).when(normalize('DE')).then();
    }
    scenario(customer, customerCreated('01711234567')).when(normalize(null)).then();
  });

  it('normalizes the number of a merged customer without making it searchable', () => {
    const customerMergedAway: CustomerEvent = {
      type: 'CustomerMergedAway',
      data: { customerId: 3, intoCustomerId: 4, personal: {} },
    };
    scenario(customer, customerCreated('01711234567'), customerMergedAway)
      .when(normalize('DE'))
      .thenState({ phone: '+491711234567', phoneDigits: null, searchText: '' });
  });

  it('records nothing for an erased customer, and throws NotFoundError without one', () => {
    const customerErased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
    scenario(customer, customerCreated('01711234567'), customerErased).when(normalize('DE')).then();
    scenario(customer).when(normalize('DE')).thenThrows(NotFoundError);
  });

  it('moves the claim to the normalized number', () => {
    const before = scenario(customer, customerCreated('01711234567')).state();
    expect(findMovedValues(before, [phoneNormalized('+491711234567', 'DE')])).toEqual({
      added: [{ kind: 'phone', value: '+491711234567' }],
      released: [{ kind: 'phone', value: '01711234567' }],
    });
  });
});
