/**
 * Models what the service must show and send, written from docs/api.md alone: nothing here comes from the code under test.
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

/**
 * An event of a customer card as receivers see it. Its place in the list is its `sequence`, unless the card was part of a
 * merge, which has events that nobody is sent.
 */
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
  /** Ids of rewards, with what each took when it was unlocked. */
  unlocked: Map<number, number>;
  /** The same without each merge into the card, the last one last, and what the sum of both balances unlocked in it. */
  unmerged: { unlocked: Map<number, number>; reached: Map<number, number> }[];
  events: CardEvent[];
  /** By place in the list: the rewards that a redemption locked, with what each took. */
  locked: Map<number, Map<number, number>>;
  /** By place in the list: events that were reversed, and those that are reversals or part of a merge. */
  reversed: Set<number>;
  reversals: Set<number>;
  merging: Set<number>;
  wasMerged: boolean;
  /** The card that goes on for it, while it is merged. */
  closedInto: CustomerCard | undefined;
};

/** The changes of a merge, so that it can be undone. */
export type Merge = {
  from: Customer;
  moved: CustomerCard[];
  added: { closed: CustomerCard; onto: CustomerCard; stamps: number }[];
};

export type Customer = {
  id: number;
  firstName: string;
  /** Null once erased. */
  email: string | null;
  marketing: boolean;
  cards: CustomerCard[];
  /** All that were ever theirs by enrolment. */
  issued: CustomerCard[];
  /** And all that ever came to them by a merge: what was sent meanwhile names them. */
  everHeld: Set<CustomerCard>;
  mergedInto: Customer | undefined;
  merges: Merge[];
  /** Erasing somebody who was merged with it may have given it another key, which is told to nobody. */
  wasMerged: boolean;
  erased: boolean;
  events: { type: 'customer.created' | 'customer.updated'; firstName: string }[];
};

const refused = (code = 'validation_failed'): Refusal => ({ status: 422, code });
const NOT_FOUND: Refusal = { status: 404, code: 'not_found' };

/** CCARD-22, CCARD-26 */
export function refusesEnrolment(customer: Customer, card: Card): Refusal | undefined {
  if (card.archived || card.expired) return refused();
  return customer.cards.some((own) => own.card === card) ? refused('taken') : undefined;
}

export function enrol(customer: Customer, card: Card, id: number): CustomerCard {
  const customerCard: CustomerCard = {
    id,
    customer,
    card,
    count: 0,
    unlocked: new Map(),
    unmerged: [],
    events: [{ type: 'customer_card.created' }],
    locked: new Map(),
    reversed: new Set(),
    reversals: new Set(),
    merging: new Set(),
    wasMerged: false,
    closedInto: undefined,
  };
  customer.cards.push(customerCard);
  customer.issued.push(customerCard);
  customer.everHeld.add(customerCard);
  if (card.initial > 0) add(customerCard, card.initial, 'welcome_bonus');
  return customerCard;
}

export function stamp(
  customerCard: CustomerCard,
  stamps: number,
  source: string,
): Refusal | undefined {
  if (customerCard.card.expired) return refused('card_expired');
  add(customerCard, stamps, source);
  return undefined;
}

export function redeem(customerCard: CustomerCard, reward: Reward): Refusal | undefined {
  if (reward.deleted || !customerCard.card.rewards.includes(reward)) return NOT_FOUND;
  if (customerCard.card.expired) return refused('card_expired');
  if (!reward.active) return refused('reward_inactive');
  const spent = takes(reward, customerCard.unlocked);
  if (customerCard.count < spent) return refused('insufficient_stamps');
  customerCard.count -= spent;
  const { count } = customerCard;
  reward.redeemed = true;
  // Locked again is what the balance no longer covers, by what it takes on the card (STAMP-42).
  const isCovered = (id: number) =>
    customerCard.card.rewards.some(
      (one) => one.id === id && !one.deleted && takes(one, customerCard.unlocked) <= count,
    );
  const locked = new Map([...customerCard.unlocked].filter(([id]) => !isCovered(id)));
  customerCard.locked.set(customerCard.events.length, locked);
  customerCard.events.push({ type: 'reward.redeemed', reward: reward.id, spent, count });
  const maps = customerCard.unmerged.flatMap(({ unlocked, reached }) => [unlocked, reached]);
  for (const map of [customerCard.unlocked, ...maps])
    for (const id of locked.keys()) map.delete(id);
  return undefined;
}

export function adjust(customerCard: CustomerCard, stamps: number): Refusal | undefined {
  if (stamps > 0) add(customerCard, stamps, 'adjustment');
  else if (customerCard.count < -stamps) return refused('insufficient_stamps');
  else takeOff(customerCard, -stamps);
  return undefined;
}

/** @param sequence of the event */
export function reverse(customerCard: CustomerCard, sequence: number): Refusal | undefined {
  const event = customerCard.events[sequence];
  if (!event) return NOT_FOUND;
  if (event.type === 'customer_card.created' || event.type === 'reward.unlocked') return refused();
  if (customerCard.reversals.has(sequence) || customerCard.reversed.has(sequence)) return refused();
  const at = customerCard.events.length;
  if (event.type === 'stamp.earned') {
    if (customerCard.count < event.stamps) return refused('insufficient_stamps');
    takeOff(customerCard, event.stamps);
  } else if (event.type === 'reward.redeemed') {
    const locked = customerCard.locked.get(sequence) ?? [];
    add(customerCard, event.spent, 'adjustment', new Map([...locked, ...customerCard.unlocked]));
  } else add(customerCard, event.stamps, 'adjustment');
  customerCard.reversed.add(sequence);
  customerCard.reversals.add(at);
  return undefined;
}

/** Somebody who can be changed: neither erased (ERASE-07) nor merged (MERGE-21). */
export function refusesChange(customer: Customer): Refusal | undefined {
  if (customer.erased) return refused('customer_erased');
  return customer.mergedInto && refused('customer_merged');
}

/** MERGE-15, MERGE-16, MERGE-22 */
export function merge(into: Customer, from: Customer): void {
  const done: Merge = { from, moved: [], added: [] };
  for (const customerCard of from.cards) {
    const onto = into.cards.find(({ card }) => card === customerCard.card);
    if (onto) {
      const stamps = customerCard.count;
      const { unlocked, unmerged } = onto;
      const lowered = lower(unlocked, customerCard.unlocked);
      onto.unlocked = new Map(unlocked);
      onto.unmerged = [];
      carryOver(customerCard, onto, stamps, lowered);
      const reached = new Map([...onto.unlocked].filter(([id]) => !lowered.has(id)));
      onto.unlocked = lower(onto.unlocked, lowered);
      onto.unmerged = [...unmerged, { unlocked, reached }];
      customerCard.closedInto = onto;
      done.added.push({ closed: customerCard, onto, stamps });
    } else {
      customerCard.customer = into;
      customerCard.wasMerged = true;
      into.cards.push(customerCard);
      into.everHeld.add(customerCard);
      done.moved.push(customerCard);
    }
  }
  from.cards = [];
  from.mergedInto = into;
  from.wasMerged = true;
  into.wasMerged = true;
  into.merges.push(done);
  tellOf(into, from);
}

/** MERGE-28 to MERGE-30: of the last customer that was merged into it (MERGE-34). */
export function unmerge(into: Customer): void {
  const done = into.merges.pop();
  if (!done) throw new Error('nobody is merged into this customer');
  const { from, moved, added } = done;
  into.cards = into.cards.filter((customerCard) => !moved.includes(customerCard));
  for (const movedCard of moved) movedCard.customer = from;
  for (const { closed, onto, stamps } of added) {
    closed.closedInto = undefined;
    carryOver(onto, closed, Math.min(stamps, onto.count));
    relock(onto);
  }
  from.cards = [...moved, ...added.map(({ closed }) => closed)];
  from.mergedInto = undefined;
  tellOf(into, from);
}

/** The customer, and all who are merged with them: they are one person (MERGE-38). */
export function personOf(customer: Customer): Customer[] {
  let root = customer;
  while (root.mergedInto) root = root.mergedInto;
  const all = (one: Customer): Customer[] => [one, ...one.merges.flatMap(({ from }) => all(from))];
  return all(root);
}

/** ERASE-02, ERASE-13 */
export function erase(customer: Customer): void {
  for (const one of personOf(customer)) {
    if (one.erased) continue;
    one.erased = true;
    one.firstName = 'Erased';
    one.email = null;
    one.events.push({ type: 'customer.updated', firstName: one.firstName });
  }
}

export function stampsOf({ cards }: Customer): number {
  return cards.reduce((sum, { count }) => sum + count, 0);
}

/** MERGE-19 */
export function reached(customerCard: CustomerCard): CustomerCard {
  return customerCard.closedInto ? reached(customerCard.closedInto) : customerCard;
}

function tellOf(...customers: Customer[]): void {
  for (const { events, firstName } of customers) {
    events.push({ type: 'customer.updated', firstName });
  }
}

/** REWARD-31 */
function relock(customerCard: CustomerCard): void {
  const last = customerCard.unmerged.pop();
  if (!last) throw new Error('nothing is merged into this card');
  const remaining = [...last.reached].filter(([, stamps]) => stamps <= customerCard.count);
  customerCard.unlocked = new Map([...last.unlocked, ...remaining]);
  for (const { unlocked } of customerCard.unmerged)
    for (const [id, stamps] of remaining) unlocked.set(id, stamps);
}

/** REWARD-30 */
function lower(one: Map<number, number>, other: Map<number, number>): Map<number, number> {
  const both = new Map(one);
  for (const [id, stamps] of other) both.set(id, Math.min(both.get(id) ?? stamps, stamps));
  return both;
}

function carryOver(
  from: CustomerCard,
  onto: CustomerCard,
  stamps: number,
  unlocked = onto.unlocked,
): void {
  const before = [from.events.length, onto.events.length] as const;
  if (stamps > 0) {
    takeOff(from, stamps);
    add(onto, stamps, 'adjustment', unlocked);
  }
  for (let i = before[0]; i < from.events.length; i++) from.merging.add(i);
  for (let i = before[1]; i < onto.events.length; i++) onto.merging.add(i);
  from.wasMerged = true;
  onto.wasMerged = true;
}

/** REWARD-24 */
export function deleteReward(reward: Reward): Refusal | undefined {
  if (reward.redeemed) return refused();
  reward.deleted = true;
  return undefined;
}

/** Cheapest first. */
export function availableRewards({ card, count, unlocked }: CustomerCard): Reward[] {
  return inOrder(card, unlocked).filter((one) => one.active && takes(one, unlocked) <= count);
}

export function statusOf({ card, count }: CustomerCard): string {
  if (card.expired) return 'expired';
  return count >= card.required ? 'completed' : 'active';
}

/** @param covered what rewards take that were unlocked before (REWARD-27, REDEEM-27, REWARD-30) */
function add(
  customerCard: CustomerCard,
  stamps: number,
  source: string,
  covered = customerCard.unlocked,
): void {
  customerCard.count += stamps;
  const { count } = customerCard;
  customerCard.events.push({ type: 'stamp.earned', stamps, count, source });
  for (const reward of inOrder(customerCard.card, covered)) {
    const { id, active } = reward;
    if (!active || takes(reward, covered) > count || customerCard.unlocked.has(id)) continue;
    customerCard.unlocked.set(id, takes(reward, covered));
    for (const { unlocked } of customerCard.unmerged) unlocked.set(id, takes(reward, covered));
    customerCard.events.push({ type: 'reward.unlocked', reward: id, count });
  }
}

function takeOff(customerCard: CustomerCard, stamps: number): void {
  customerCard.count -= stamps;
  const { count } = customerCard;
  customerCard.events.push({ type: 'stamp.removed', stamps, count, source: 'adjustment' });
}

/** REWARD-27 */
function takes({ id, required }: Reward, unlocked: Map<number, number>): number {
  return Math.min(required, unlocked.get(id) ?? required);
}

function inOrder({ rewards }: Card, unlocked: Map<number, number>): Reward[] {
  return rewards
    .filter(({ deleted }) => !deleted)
    .sort((a, b) => takes(a, unlocked) - takes(b, unlocked) || a.id - b.id);
}
