import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { customer, findMovedValues, type Customer } from './customer.js';
import type { CustomerCreated, CustomerEvent } from './customer.events.js';
import { normalizeCustomerPhone } from './phone-normalization.js';

const added = (phone: string | null): CustomerCreated => ({
  type: 'CustomerCreated',
  data: {
    customerId: 3,
    accountId: 1,
    source: 'api',
    marketingConsent: true,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
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

describe('normalizing the phone number', () => {
  const normalized = (phone: string, country: string | null): CustomerEvent => ({
    type: 'CustomerPhoneNormalized',
    data: { customerId: 3, country, personal: { phone } },
  });
  const normalize = (country: string | null) => (state: Customer | undefined) =>
    normalizeCustomerPhone(state, { country });

  it('records the form of the country, and says which country that was', () => {
    scenario(customer, added('01711234567'))
      .when(normalize('DE'))
      .then(normalized('+491711234567', 'DE'));
    scenario(customer, added('01711234567'))
      .when(normalize('DE'))
      .thenState({ phone: '+491711234567', phoneDigits: '491711234567', email: 'ada@x.example' });
  });

  it('does nothing twice, and nothing without a need', () => {
    const after = normalized('+491711234567', 'DE');
    scenario(customer, added('01711234567'), after).when(normalize('DE')).then();
    // The country has changed twice: the number is what it was.
    scenario(customer, added('01711234567'), after).when(normalize('AT')).then();
    for (const phone of ['+436641234567', '12', null]) {
      scenario(customer, added(phone)).when(normalize('DE')).then();
    }
    scenario(customer, added('01711234567')).when(normalize(null)).then();
  });

  it('changes a merged customer, and does not let them be found', () => {
    const away: CustomerEvent = {
      type: 'CustomerMergedAway',
      data: { customerId: 3, intoCustomerId: 4, personal: {} },
    };
    scenario(customer, added('01711234567'), away)
      .when(normalize('DE'))
      .thenState({ phone: '+491711234567', phoneDigits: null, searchText: '' });
  });

  it('leaves an erased customer alone', () => {
    const erased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
    scenario(customer, added('01711234567'), erased).when(normalize('DE')).then();
    scenario(customer).when(normalize('DE')).thenThrows(NotFoundError);
  });

  it('moves the claim', () => {
    const before = scenario(customer, added('01711234567')).state();
    expect(findMovedValues(before, [normalized('+491711234567', 'DE')])).toEqual({
      added: [{ kind: 'phone', value: '+491711234567' }],
      released: [{ kind: 'phone', value: '01711234567' }],
    });
  });
});
