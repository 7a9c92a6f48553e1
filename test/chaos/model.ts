/**
 * What the service must show and send, written from docs/api.md alone: nothing here comes from the code under test.
 * Every function does to the model what a request does to the service, and says how it is answered.
 */

export type Refusal = { status: 404 | 422; code: string };

export type Reward = {
  id: number;
  name: string;
  required: number;
  active: boolean;
  deleted: boolean;
  /** Ever. */
  redeemed: boolean;
};

export type Card = {
  id: number;
  name: string;
  required: number;
  initial: number;
  expired: boolean;
  archived: boolean;
  rewards: Reward[];
};

/** An event of a customer card as receivers see it. Its place in the list is its `sequence`. */
export type CardEvent =
  | { type: 'customer_card.created' }
  | { type: 'stamp.earned' | 'stamp.removed'; stamps: number; count: number; source: string }
  | { type: 'reward.unlocked'; reward: number; count: number }
  | { type: 'reward.redeemed'; reward: number; spent: number; count: number };

export type CustomerCard = {
  id: number;
  customer: Customer;
  card: Card;
  count: number;
  /** Ids of rewards. */
  unlocked: Set<number>;
  events: CardEvent[];
  /** By sequence: events that were reversed, and those that are reversals. */
  reversed: Set<number>;
  reversals: Set<number>;
};

export type Customer = {
  id: number;
  firstName: string;
  email: string;
  marketing: boolean;
  cards: CustomerCard[];
  events: { type: 'customer.created' | 'customer.updated'; firstName: string }[];
};

const refused = (code = 'validation_failed'): Refusal => ({ status: 422, code });
const NOT_FOUND: Refusal = { status: 404, code: 'not_found' };

/** CCARD-22, CCARD-26 */
export function refusesEnrolment(customer: Customer, card: Card): Refusal | undefined {
  if (card.archived || card.expired) return refused();
  return customer.cards.some((held) => held.card === card) ? refused() : undefined;
}

export function enrol(customer: Customer, card: Card, id: number): CustomerCard {
  const held: CustomerCard = {
    id,
    customer,
    card,
    count: 0,
    unlocked: new Set(),
    events: [{ type: 'customer_card.created' }],
    reversed: new Set(),
    reversals: new Set(),
  };
  customer.cards.push(held);
  if (card.initial > 0) add(held, card.initial, 'welcome_bonus');
  return held;
}

export function stamp(held: CustomerCard, stamps: number, source: string): Refusal | undefined {
  if (held.card.expired) return refused('card_expired');
  add(held, stamps, source);
  return undefined;
}

export function redeem(held: CustomerCard, reward: Reward): Refusal | undefined {
  if (reward.deleted || !held.card.rewards.includes(reward)) return NOT_FOUND;
  if (held.card.expired) return refused('card_expired');
  if (!reward.active) return refused('reward_inactive');
  if (held.count < reward.required) return refused('insufficient_stamps');
  held.count -= reward.required;
  const { id, required } = reward;
  reward.redeemed = true;
  held.events.push({ type: 'reward.redeemed', reward: id, spent: required, count: held.count });
  // Locked again is what the balance no longer covers, by the thresholds in force (STAMP-42).
  const covered = held.card.rewards.filter((one) => !one.deleted && one.required <= held.count);
  held.unlocked = new Set(covered.map((one) => one.id).filter((one) => held.unlocked.has(one)));
  return undefined;
}

export function adjust(held: CustomerCard, stamps: number): Refusal | undefined {
  if (stamps > 0) add(held, stamps, 'adjustment');
  else if (held.count < -stamps) return refused('insufficient_stamps');
  else takeOff(held, -stamps);
  return undefined;
}

/** @param sequence of the event */
export function reverse(held: CustomerCard, sequence: number): Refusal | undefined {
  const event = held.events[sequence];
  if (!event) return NOT_FOUND;
  if (event.type === 'customer_card.created' || event.type === 'reward.unlocked') return refused();
  if (held.reversals.has(sequence) || held.reversed.has(sequence)) return refused();
  const at = held.events.length;
  if (event.type === 'stamp.earned') {
    if (held.count < event.stamps) return refused('insufficient_stamps');
    takeOff(held, event.stamps);
  } else add(held, 'spent' in event ? event.spent : event.stamps, 'adjustment');
  held.reversed.add(sequence);
  held.reversals.add(at);
  return undefined;
}

/** REWARD-24 */
export function deleteReward(reward: Reward): Refusal | undefined {
  if (reward.redeemed) return refused();
  reward.deleted = true;
  return undefined;
}

/** Cheapest first. */
export function availableRewards({ card, count }: CustomerCard): Reward[] {
  return inOrder(card).filter(({ active, required }) => active && required <= count);
}

export function statusOf({ card, count }: CustomerCard): string {
  if (card.expired) return 'expired';
  return count >= card.required ? 'completed' : 'active';
}

function add(held: CustomerCard, stamps: number, source: string): void {
  held.count += stamps;
  const { count } = held;
  held.events.push({ type: 'stamp.earned', stamps, count, source });
  for (const { id, active, required } of inOrder(held.card)) {
    if (!active || required > count || held.unlocked.has(id)) continue;
    held.unlocked.add(id);
    held.events.push({ type: 'reward.unlocked', reward: id, count });
  }
}

function takeOff(held: CustomerCard, stamps: number): void {
  held.count -= stamps;
  const { count } = held;
  held.events.push({ type: 'stamp.removed', stamps, count, source: 'adjustment' });
}

function inOrder({ rewards }: Card): Reward[] {
  return rewards
    .filter(({ deleted }) => !deleted)
    .sort((a, b) => a.required - b.required || a.id - b.id);
}
