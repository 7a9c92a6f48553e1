import { expect } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { Client } from '../services/service.js';

let people = 0;

/** A customer card, with where its API and its page are. */
export type Enrolled = {
  card: CardJson;
  customerId: number;
  customerCard: CustomerCardDetailJson;
  /** Of the customer card in the API. */
  api: string;
  /** Of its page. */
  page: string;
  stamp: (stamps: number, more?: object) => Promise<void>;
};

/** @param rewards name and threshold */
export async function enrolWithPage(
  store: Client,
  {
    card: fields = {},
    customer = {},
    rewards = [],
    links = false,
  }: {
    card?: object;
    customer?: object;
    rewards?: [string, number][];
    /** Whether to send the links of the card. */
    links?: boolean;
  } = {},
): Promise<Enrolled> {
  const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee', ...fields },
  });
  for (const [name, stamps_required] of rewards) {
    const reward = { card_id: card.id, name, stamps_required, description: `About ${name}` };
    expect((await store.post(`${store.store}/rewards`, { reward })).status).toBe(201);
  }
  const { status, body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Ada', email: `card${++people}@mail.example`, ...customer },
    card_id: card.id,
    send_card_links: links,
  });
  expect(status).toBe(201);
  const { customer_card: customerCard } = body;
  if (!customerCard) throw new Error('nobody was enrolled');
  const api = `${store.store}/customers/${body.id}/customer_cards/${customerCard.id}`;
  return {
    card,
    customerId: body.id,
    customerCard,
    api,
    page: `/passes/${customerCard.uuid}`,
    stamp: async (stamps, more = {}) => {
      expect((await store.post(`${api}/stamp`, { stamps, ...more })).status).toBe(200);
    },
  };
}
