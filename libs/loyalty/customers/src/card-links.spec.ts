import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { requestCardLinks } from './card-links.js';
import { customer, type Customer } from './customer.js';
import type { CustomerEvent } from './customer.events.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const created: CustomerEvent = {
  type: 'CustomerCreated',
  data: {
    customerId: 3,
    accountId: 1,
    source: 'api',
    marketingConsent: false,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
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

const recorded = ({ type, data }: ReturnType<typeof request>) => ({ type, data });

describe('the message request for the links of a card', () => {
  it('is recorded for a card of the customer', () => {
    scenario(customer, created)
      .when(requesting(7, 0))
      .then(recorded(request(7, 0)));
    scenario(customer, created).when(requesting(9, 0)).thenThrows(NotFoundError);
    scenario(customer).when(requesting(7, 0)).thenThrows(NotFoundError);
  });

  it('is the same request within ten minutes, unless it is for another card', () => {
    const requested = scenario(customer, created, request(7, 0));
    requested.when(requesting(7, 10 * MINUTE - 1)).then();
    requested.when(requesting(8, 1)).then(recorded(request(8, 1)));
    requested.when(requesting(7, 10 * MINUTE)).then(recorded(request(7, 10 * MINUTE)));
  });

  it('is recorded five times within 24 hours', () => {
    const often = scenario(
      customer,
      created,
      ...[0, 1, 2, 3, 4].map((hour) => request(7, hour * HOUR)),
    );
    often.when(requesting(7, 24 * HOUR - 1)).then();
    often.when(requesting(8, 24 * HOUR - 1)).then();
    often.when(requesting(7, 24 * HOUR)).then(recorded(request(7, 24 * HOUR)));
  });

  it('leaves no more behind than the last day', () => {
    const requests = Array.from({ length: 40 }, (_, i) => request(7, i * 6 * HOUR));
    const { cardLinkRequests, updatedAt } = scenario(customer, created, ...requests).state();
    expect(cardLinkRequests).toEqual(
      requests.slice(-4).map(({ at }) => ({ customerCardId: 7, at })),
    );
    expect(updatedAt).toBe(AT);
  });

  it('is refused for somebody who was erased or merged away', () => {
    const erased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
    const merged: CustomerEvent = {
      type: 'CustomerMergedAway',
      data: { customerId: 3, intoCustomerId: 4, personal: {} },
    };
    scenario(customer, created, erased)
      .when(requesting(7, 0))
      .thenRejected({ code: 'customer_erased' });
    scenario(customer, created, merged)
      .when(requesting(7, 0))
      .thenRejected({ code: 'customer_merged' });
  });
});
