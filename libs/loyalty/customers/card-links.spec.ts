import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { requestCardLinks } from './card-links.js';
import { customer, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const customerCreated: CustomerEvent = {
  type: 'CustomerCreated',
  data: {
    customerId: 3,
    accountId: 1,
    source: 'api',
    marketingConsent: false,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
    signup: null,
    unconfirmedConsents: [],
    personal: {
      firstName: 'Anna',
      lastName: null,
      email: 'a@x.de',
      phone: null,
      birthday: null,
      metadata: {},
      externalReferences: [],
    },
  },
};

const after = (milliseconds: number) => new Date(Date.parse(AT) + milliseconds);

const request = (
  customerCardId: number,
  milliseconds: number,
): Extract<CustomerEvent, { type: 'CardLinksRequested' }> & { at: string } => ({
  type: 'CardLinksRequested',
  data: { customerId: 3, customerCardId },
  at: after(milliseconds).toISOString(),
});

const requesting =
  (customerCardId: number, milliseconds: number) =>
  (state: Customer | undefined): CustomerEvent[] =>
    requestCardLinks(state, { customerCardId, cardIds: [7, 8] }, after(milliseconds));

const withoutTime = ({ type, data }: ReturnType<typeof request>) => ({ type, data });

describe('requestCardLinks', () => {
  it('records a message request for a card of the customer only', () => {
    scenario(customer, customerCreated)
      .when(requesting(7, 0))
      .then(withoutTime(request(7, 0)));
    scenario(customer, customerCreated).when(requesting(9, 0)).thenThrows(NotFoundError);
    scenario(customer).when(requesting(7, 0)).thenThrows(NotFoundError);
  });

  it('records nothing within ten minutes of a request, unless for another card', () => {
    const afterOne = scenario(customer, customerCreated, request(7, 0));
    afterOne.when(requesting(7, 10 * MINUTE - 1)).then();
    afterOne.when(requesting(8, 1)).then(withoutTime(request(8, 1)));
    afterOne.when(requesting(7, 10 * MINUTE)).then(withoutTime(request(7, 10 * MINUTE)));
  });

  it('records at most five requests within 24 hours', () => {
    const afterFive = scenario(
      customer,
      customerCreated,
      ...[0, 1, 2, 3, 4].map((hour) => request(7, hour * HOUR)),
    );
    afterFive.when(requesting(7, 24 * HOUR - 1)).then();
    afterFive.when(requesting(8, 24 * HOUR - 1)).then();
    afterFive.when(requesting(7, 24 * HOUR)).then(withoutTime(request(7, 24 * HOUR)));
  });

  it('keeps only the requests of the last 24 hours in the state', () => {
    const requests = Array.from({ length: 40 }, (_, i) => request(7, i * 6 * HOUR));
    const { cardLinkRequests, updatedAt } = scenario(
      customer,
      customerCreated,
      ...requests,
    ).state();
    expect(cardLinkRequests).toEqual(
      requests.slice(-4).map(({ at }) => ({ customerCardId: 7, at })),
    );
    expect(updatedAt).toBe(AT);
  });

  it('refuses a customer who was erased or merged', () => {
    const customerErased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
    const customerMergedAway: CustomerEvent = {
      type: 'CustomerMergedAway',
      data: { customerId: 3, intoCustomerId: 4, personal: {} },
    };
    scenario(customer, customerCreated, customerErased)
      .when(requesting(7, 0))
      .thenRejected({ code: 'customer_erased' });
    scenario(customer, customerCreated, customerMergedAway)
      .when(requesting(7, 0))
      .thenRejected({ code: 'customer_merged' });
  });
});
