/**
 * Models what the service must show and send, written from docs/api.md alone: nothing here comes from the code under test.
 * Every function does to the model what a request does to the service, and returns the expected rejection.
 */

export type Rejection = { status: 404 | 422; code: string };

export type Reward = {
  id: number;
  name: string;
  required: number;
  active: boolean;
  deleted: boolean;
  /** Whether it was ever redeemed. */
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
 * An event of a customer card as receivers get it. Its index in the list is its `sequence`, unless the card was part of
 * a merge, which has events that are not sent to anybody.
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
  /** The price of each unlocked reward at the time, by its id. */
  unlocked: Map<number, number>;
  /** For each merge into the card, the last one last: `unlocked` without it, and what the sum of both balances unlocked. */
  unmerged: { unlocked: Map<number, number>; unlockedBySum: Map<number, number> }[];
  events: CardEvent[];
  /** By index in the list: the rewards that a redemption locked, with their prices. */
  locked: Map<number, Map<number, number>>;
  /** By index in the list: events that were reversed, those that are reversals, and those of merges. */
  reversed: Set<number>;
  reversals: Set<number>;
  mergeEvents: Set<number>;
  wasMerged: boolean;
  /** The card that replaces it while it is merged. */
  closedInto: CustomerCard | undefined;
};

/** The changes of a merge, so that it can be undone. */
export type Merge = {
  from: Customer;
  moved: CustomerCard[];
  added: { closed: CustomerCard; target: CustomerCard; stamps: number }[];
};

export type Customer = {
  id: number;
  firstName: string;
  /** Null once erased. */
  email: string | null;
  marketing: boolean;
  cards: CustomerCard[];
  /** The cards that were issued to them. */
  issued: CustomerCard[];
  /** The cards that were ever theirs, by enrolment or merge: events from that time name them. */
  everHeld: Set<CustomerCard>;
  mergedInto: Customer | undefined;
  merges: Merge[];
  /** Whether they were part of a merge: erasing the other customer may have given them another key, without an event. */
  wasMerged: boolean;
  erased: boolean;
  events: { type: 'customer.created' | 'customer.updated'; firstName: string }[];
};

const refuse = (code = 'validation_failed'): Rejection => ({ status: 422, code });
const NOT_FOUND: Rejection = { status: 404, code: 'not_found' };

/** CCARD-22, CCARD-26 */
export function findEnrolmentRejection(customer: Customer, card: Card): Rejection | undefined {
  if (card.archived || card.expired) return refuse();
  return customer.cards.some((own) => own.card === card) ? refuse('taken') : undefined;
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
    mergeEvents: new Set(),
    wasMerged: false,
    closedInto: undefined,
  };
  customer.cards.push(customerCard);
  customer.issued.push(customerCard);
  customer.everHeld.add(customerCard);
  if (card.initial > 0) addStamps(customerCard, card.initial, 'welcome_bonus');
  return customerCard;
}

export function stamp(
  customerCard: CustomerCard,
  stamps: number,
  source: string,
): Rejection | undefined {
  if (customerCard.card.expired) return refuse('card_expired');
  addStamps(customerCard, stamps, source);
  return undefined;
}

export function redeem(customerCard: CustomerCard, reward: Reward): Rejection | undefined {
  if (reward.deleted || !customerCard.card.rewards.includes(reward)) return NOT_FOUND;
  if (customerCard.card.expired) return refuse('card_expired');
  if (!reward.active) return refuse('reward_inactive');
  const spent = getPrice(reward, customerCard.unlocked);
  if (customerCard.count < spent) return refuse('insufficient_stamps');
  customerCard.count -= spent;
  const { count } = customerCard;
  reward.redeemed = true;
  // Rewards are locked again whose price on the card the balance no longer covers (STAMP-42).
  const isCovered = (id: number) =>
    customerCard.card.rewards.some(
      (candidate) =>
        candidate.id === id &&
        !candidate.deleted &&
        getPrice(candidate, customerCard.unlocked) <= count,
    );
  const locked = new Map([...customerCard.unlocked].filter(([id]) => !isCovered(id)));
  customerCard.locked.set(customerCard.events.length, locked);
  customerCard.events.push({ type: 'reward.redeemed', reward: reward.id, spent, count });
  const maps = customerCard.unmerged.flatMap(({ unlocked, unlockedBySum }) => [
    unlocked,
    unlockedBySum,
  ]);
  for (const map of [customerCard.unlocked, ...maps])
    for (const id of locked.keys()) map.delete(id);
  return undefined;
}

export function adjust(customerCard: CustomerCard, stamps: number): Rejection | undefined {
  if (stamps > 0) addStamps(customerCard, stamps, 'adjustment');
  else if (customerCard.count < -stamps) return refuse('insufficient_stamps');
  else removeStamps(customerCard, -stamps);
  return undefined;
}

/** @param sequence of the event */
export function reverse(customerCard: CustomerCard, sequence: number): Rejection | undefined {
  const event = customerCard.events[sequence];
  if (!event) return NOT_FOUND;
  if (event.type === 'customer_card.created' || event.type === 'reward.unlocked') return refuse();
  if (customerCard.reversals.has(sequence) || customerCard.reversed.has(sequence)) return refuse();
  const at = customerCard.events.length;
  if (event.type === 'stamp.earned') {
    if (customerCard.count < event.stamps) return refuse('insufficient_stamps');
    removeStamps(customerCard, event.stamps);
  } else if (event.type === 'reward.redeemed') {
    const locked = customerCard.locked.get(sequence) ?? [];
    addStamps(
      customerCard,
      event.spent,
      'adjustment',
      new Map([...locked, ...customerCard.unlocked]),
    );
  } else addStamps(customerCard, event.stamps, 'adjustment');
  customerCard.reversed.add(sequence);
  customerCard.reversals.add(at);
  return undefined;
}

/** An event of a customer card that a receipt number was used for. */
export type ReceiptUse = { customerCard: CustomerCard; sequence: number };

/** What a receipt number was last used for, and every card that it was used on. */
export type ReceiptNumber = {
  number: string;
  stamping: ReceiptUse | undefined;
  redemption: ReceiptUse | undefined;
  stampedCards: Set<CustomerCard>;
};

/** Lists what a receipt reverses: of both cards, the one that was stamped is the first. */
export function listStandingUses({ stamping, redemption }: ReceiptNumber): ReceiptUse[] {
  return [stamping, redemption].filter(
    (use): use is ReceiptUse => use !== undefined && !isReversed(use),
  );
}

export function isReversed({ customerCard, sequence }: ReceiptUse): boolean {
  return customerCard.reversed.has(sequence);
}

/** RECEIPT-16, RECEIPT-17, RECEIPT-21, RECEIPT-27 */
export function reverseReceipt(receipt: ReceiptNumber): Rejection | undefined {
  const uses = listStandingUses(receipt);
  for (const customerCard of new Set(uses.map((use) => use.customerCard))) {
    if (customerCard.closedInto) return refuse('customer_merged');
    const own = uses.filter((use) => use.customerCard === customerCard);
    const change = own.reduce((sum, use) => sum + getChange(use), 0);
    if (customerCard.count < change) return refuse('insufficient_stamps');
  }
  const isCovered = uses.every((use) => use.customerCard.count >= getChange(use));
  for (const { customerCard, sequence } of isCovered ? uses : uses.toReversed()) {
    const rejection = reverse(customerCard, sequence);
    if (rejection) throw new Error(`event ${sequence} cannot be reversed: ${rejection.code}`);
  }
  return undefined;
}

function getChange({ customerCard, sequence }: ReceiptUse): number {
  const event = customerCard.events[sequence];
  if (event?.type === 'stamp.earned') return event.stamps;
  if (event?.type === 'reward.redeemed') return -event.spent;
  throw new Error(`event ${sequence} has no receipt`);
}

/** Refuses changes of erased (ERASE-07) and merged (MERGE-21) customers. */
export function findChangeRejection(customer: Customer): Rejection | undefined {
  if (customer.erased) return refuse('customer_erased');
  return customer.mergedInto && refuse('customer_merged');
}

/** MERGE-15, MERGE-16, MERGE-22 */
export function merge(into: Customer, from: Customer): void {
  const mergeRecord: Merge = { from, moved: [], added: [] };
  for (const customerCard of from.cards) {
    const target = into.cards.find(({ card }) => card === customerCard.card);
    if (target) {
      const stamps = customerCard.count;
      const { unlocked, unmerged } = target;
      const lowered = mergeUnlocked(unlocked, customerCard.unlocked);
      target.unlocked = new Map(unlocked);
      target.unmerged = [];
      moveStamps(customerCard, target, stamps, lowered);
      const unlockedBySum = new Map([...target.unlocked].filter(([id]) => !lowered.has(id)));
      target.unlocked = mergeUnlocked(target.unlocked, lowered);
      target.unmerged = [...unmerged, { unlocked, unlockedBySum }];
      customerCard.closedInto = target;
      mergeRecord.added.push({ closed: customerCard, target, stamps });
    } else {
      customerCard.customer = into;
      customerCard.wasMerged = true;
      into.cards.push(customerCard);
      into.everHeld.add(customerCard);
      mergeRecord.moved.push(customerCard);
    }
  }
  from.cards = [];
  from.mergedInto = into;
  from.wasMerged = true;
  into.wasMerged = true;
  into.merges.push(mergeRecord);
  addUpdateEvents(into, from);
}

/** Undoes the last merge (MERGE-28 to MERGE-30, MERGE-34). */
export function unmerge(into: Customer): void {
  const mergeRecord = into.merges.pop();
  if (!mergeRecord) throw new Error('nobody is merged into this customer');
  const { from, moved, added } = mergeRecord;
  into.cards = into.cards.filter((customerCard) => !moved.includes(customerCard));
  for (const movedCard of moved) movedCard.customer = from;
  for (const { closed, target, stamps } of added) {
    closed.closedInto = undefined;
    moveStamps(target, closed, Math.min(stamps, target.count));
    relock(target);
  }
  from.cards = [...moved, ...added.map(({ closed }) => closed)];
  from.mergedInto = undefined;
  addUpdateEvents(into, from);
}

/** Lists the customer and all who are merged with them, who are one person (MERGE-38). */
export function listPerson(customer: Customer): Customer[] {
  let root = customer;
  while (root.mergedInto) root = root.mergedInto;
  const all = (person: Customer): Customer[] => [
    person,
    ...person.merges.flatMap(({ from }) => all(from)),
  ];
  return all(root);
}

/** ERASE-02, ERASE-13 */
export function erase(customer: Customer): void {
  for (const member of listPerson(customer)) {
    if (member.erased) continue;
    member.erased = true;
    member.firstName = 'Erased';
    member.email = null;
    member.events.push({ type: 'customer.updated', firstName: member.firstName });
  }
}

export function sumStamps({ cards }: Customer): number {
  return cards.reduce((sum, { count }) => sum + count, 0);
}

/** MERGE-19 */
export function findOpenCard(customerCard: CustomerCard): CustomerCard {
  return customerCard.closedInto ? findOpenCard(customerCard.closedInto) : customerCard;
}

function addUpdateEvents(...customers: Customer[]): void {
  for (const { events, firstName } of customers) {
    events.push({ type: 'customer.updated', firstName });
  }
}

/** REWARD-31 */
function relock(customerCard: CustomerCard): void {
  const last = customerCard.unmerged.pop();
  if (!last) throw new Error('nothing is merged into this card');
  const remaining = [...last.unlockedBySum].filter(([, stamps]) => stamps <= customerCard.count);
  customerCard.unlocked = new Map([...last.unlocked, ...remaining]);
  for (const { unlocked } of customerCard.unmerged)
    for (const [id, stamps] of remaining) unlocked.set(id, stamps);
}

/** REWARD-30 */
function mergeUnlocked(one: Map<number, number>, other: Map<number, number>): Map<number, number> {
  const both = new Map(one);
  for (const [id, stamps] of other) both.set(id, Math.min(both.get(id) ?? stamps, stamps));
  return both;
}

function moveStamps(
  from: CustomerCard,
  target: CustomerCard,
  stamps: number,
  unlocked = target.unlocked,
): void {
  const before = [from.events.length, target.events.length] as const;
  if (stamps > 0) {
    removeStamps(from, stamps);
    addStamps(target, stamps, 'adjustment', unlocked);
  }
  for (let i = before[0]; i < from.events.length; i++) from.mergeEvents.add(i);
  for (let i = before[1]; i < target.events.length; i++) target.mergeEvents.add(i);
  from.wasMerged = true;
  target.wasMerged = true;
}

/** REWARD-24 */
export function deleteReward(reward: Reward): Rejection | undefined {
  if (reward.redeemed) return refuse();
  reward.deleted = true;
  return undefined;
}

/** Lists the available rewards, cheapest first. */
export function availableRewards({ card, count, unlocked }: CustomerCard): Reward[] {
  return listByPrice(card, unlocked).filter(
    (reward) => reward.active && getPrice(reward, unlocked) <= count,
  );
}

export function getStatus({ card, count }: CustomerCard): string {
  if (card.expired) return 'expired';
  return count >= card.required ? 'completed' : 'active';
}

/** Adds stamps and unlocks rewards. @param covered prices of rewards unlocked before (REWARD-27, REDEEM-27, REWARD-30) */
function addStamps(
  customerCard: CustomerCard,
  stamps: number,
  source: string,
  covered = customerCard.unlocked,
): void {
  customerCard.count += stamps;
  const { count } = customerCard;
  customerCard.events.push({ type: 'stamp.earned', stamps, count, source });
  for (const reward of listByPrice(customerCard.card, covered)) {
    const { id, active } = reward;
    if (!active || getPrice(reward, covered) > count || customerCard.unlocked.has(id)) continue;
    customerCard.unlocked.set(id, getPrice(reward, covered));
    for (const { unlocked } of customerCard.unmerged) unlocked.set(id, getPrice(reward, covered));
    customerCard.events.push({ type: 'reward.unlocked', reward: id, count });
  }
}

function removeStamps(customerCard: CustomerCard, stamps: number): void {
  customerCard.count -= stamps;
  const { count } = customerCard;
  customerCard.events.push({ type: 'stamp.removed', stamps, count, source: 'adjustment' });
}

/** REWARD-27 */
function getPrice({ id, required }: Reward, unlocked: Map<number, number>): number {
  return Math.min(required, unlocked.get(id) ?? required);
}

function listByPrice({ rewards }: Card, unlocked: Map<number, number>): Reward[] {
  return rewards
    .filter(({ deleted }) => !deleted)
    .sort((a, b) => getPrice(a, unlocked) - getPrice(b, unlocked) || a.id - b.id);
}
