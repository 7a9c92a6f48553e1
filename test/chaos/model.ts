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

/** What a merge did to the cards, so that it can be undone. */
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
  held: Set<CustomerCard>;
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
  return customer.cards.some((held) => held.card === card) ? refused('taken') : undefined;
}

export function enrol(customer: Customer, card: Card, id: number): CustomerCard {
  const held: CustomerCard = {
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
  customer.cards.push(held);
  customer.issued.push(held);
  customer.held.add(held);
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
  const spent = takes(reward, held.unlocked);
  if (held.count < spent) return refused('insufficient_stamps');
  held.count -= spent;
  const { count } = held;
  reward.redeemed = true;
  // Locked again is what the balance no longer covers, by what it takes on the card (STAMP-42).
  const isCovered = (id: number) =>
    held.card.rewards.some(
      (one) => one.id === id && !one.deleted && takes(one, held.unlocked) <= count,
    );
  const locked = new Map([...held.unlocked].filter(([id]) => !isCovered(id)));
  held.locked.set(held.events.length, locked);
  held.events.push({ type: 'reward.redeemed', reward: reward.id, spent, count });
  const maps = held.unmerged.flatMap(({ unlocked, reached }) => [unlocked, reached]);
  for (const map of [held.unlocked, ...maps]) for (const id of locked.keys()) map.delete(id);
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
  } else if (event.type === 'reward.redeemed') {
    const locked = held.locked.get(sequence) ?? [];
    add(held, event.spent, 'adjustment', new Map([...locked, ...held.unlocked]));
  } else add(held, event.stamps, 'adjustment');
  held.reversed.add(sequence);
  held.reversals.add(at);
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
  for (const held of from.cards) {
    const onto = into.cards.find(({ card }) => card === held.card);
    if (onto) {
      const stamps = held.count;
      const { unlocked, unmerged } = onto;
      const kept = lower(unlocked, held.unlocked);
      onto.unlocked = new Map(unlocked);
      onto.unmerged = [];
      carryOver(held, onto, stamps, kept);
      const reached = new Map([...onto.unlocked].filter(([id]) => !kept.has(id)));
      onto.unlocked = lower(onto.unlocked, kept);
      onto.unmerged = [...unmerged, { unlocked, reached }];
      held.closedInto = onto;
      done.added.push({ closed: held, onto, stamps });
    } else {
      held.customer = into;
      held.wasMerged = true;
      into.cards.push(held);
      into.held.add(held);
      done.moved.push(held);
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
  into.cards = into.cards.filter((held) => !moved.includes(held));
  for (const held of moved) held.customer = from;
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
export function reached(held: CustomerCard): CustomerCard {
  return held.closedInto ? reached(held.closedInto) : held;
}

function tellOf(...customers: Customer[]): void {
  for (const { events, firstName } of customers) {
    events.push({ type: 'customer.updated', firstName });
  }
}

/** REWARD-31 */
function relock(held: CustomerCard): void {
  const last = held.unmerged.pop();
  if (!last) throw new Error('nothing is merged into this card');
  const kept = [...last.reached].filter(([, stamps]) => stamps <= held.count);
  held.unlocked = new Map([...last.unlocked, ...kept]);
  for (const { unlocked } of held.unmerged)
    for (const [id, stamps] of kept) unlocked.set(id, stamps);
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
  kept = onto.unlocked,
): void {
  const before = [from.events.length, onto.events.length] as const;
  if (stamps > 0) {
    takeOff(from, stamps);
    add(onto, stamps, 'adjustment', kept);
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

/** @param kept what rewards take that were unlocked before (REWARD-27, REDEEM-27, REWARD-30) */
function add(held: CustomerCard, stamps: number, source: string, kept = held.unlocked): void {
  held.count += stamps;
  const { count } = held;
  held.events.push({ type: 'stamp.earned', stamps, count, source });
  for (const reward of inOrder(held.card, kept)) {
    const { id, active } = reward;
    if (!active || takes(reward, kept) > count || held.unlocked.has(id)) continue;
    held.unlocked.set(id, takes(reward, kept));
    for (const { unlocked } of held.unmerged) unlocked.set(id, takes(reward, kept));
    held.events.push({ type: 'reward.unlocked', reward: id, count });
  }
}

function takeOff(held: CustomerCard, stamps: number): void {
  held.count -= stamps;
  const { count } = held;
  held.events.push({ type: 'stamp.removed', stamps, count, source: 'adjustment' });
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
