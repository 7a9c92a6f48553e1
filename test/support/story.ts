import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import type { CreatedCustomerJson } from '#customers/customer.dto.js';
import type { CardJson } from '#cards/card.dto.js';
import type { RewardJson } from '#rewards/reward.dto.js';
import type { Client } from './service.js';

let people = 0;

/** A card with rewards and a customer enrolled on it, created through the API. */
export async function enrol(
  store: Client,
  options: { card?: object; rewards?: number[]; email?: string } = {},
): Promise<{
  card: CardJson;
  rewards: RewardJson[];
  customer: CreatedCustomerJson;
  customerCard: CustomerCardDetailJson;
  /** The customer card's path. */
  path: string;
}> {
  const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee', ...options.card },
  });
  const rewards: RewardJson[] = [];
  for (const stamps of options.rewards ?? []) {
    const { body } = await store.post<RewardJson>(`${store.store}/rewards`, {
      reward: { card_id: card.id, name: `Reward at ${stamps}`, stamps_required: stamps },
    });
    rewards.push(body);
  }
  const { body: customer } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Anna', email: options.email ?? `anna${people++}@example.com` },
    card_id: card.id,
  });
  const { customer_card: customerCard } = customer;
  if (!customerCard) throw new Error(`no customer card in ${JSON.stringify(customer)}`);
  const path = `${store.store}/customers/${customer.id}/customer_cards/${customerCard.id}`;
  return { card, rewards, customer, customerCard, path };
}
