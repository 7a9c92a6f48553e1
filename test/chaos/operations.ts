import {
  adjust,
  deleteReward,
  enrol,
  erase,
  merge,
  listPerson,
  findOpenCard,
  redeem,
  findChangeRejection,
  findEnrolmentRejection,
  isReversed,
  listStandingUses,
  reverse,
  reverseReceipt,
  stamp,
  sumStamps,
  unmerge,
  type Card,
  type Customer,
  type CustomerCard,
  type ReceiptNumber,
  type Rejection,
  type Reward,
} from './model.js';
import { RECENT_EVENTS, toCardJson, type Json, type SimpleRecord, type Worker } from './worker.js';
import { STORE } from './webhook-receiver.js';
import { openPass } from './passes.js';

/** An operation of the API. Applies it to the model and the service, and compares the results. */
export type Operation = {
  name: string;
  weight: number;
  /** Returns false when there is no record for it yet. */
  run: (worker: Worker) => Promise<boolean>;
};

const PAST = '2020-01-01T00:00:00.000Z';
const MAX_RECORDS = { cards: 6, rewards: 6, simple: 12 };
/** RECEIPT-15 */
const MAX_RECEIPT_USES = 10;
const INVALID: Rejection = { status: 422, code: 'validation_failed' };
const ALREADY_USED: Rejection = { status: 422, code: 'taken' };
const NOT_FOUND: Rejection = { status: 404, code: 'not_found' };

/** A new operation of the API is added here, with its rules in the model. */
export const OPERATIONS: Operation[] = [
  { name: 'create a card', weight: 1, run: createCard },
  { name: 'update a card', weight: 2, run: updateCard },
  { name: 'archive a card', weight: 1, run: archiveCard },
  { name: 'create a reward', weight: 2, run: createReward },
  { name: 'update a reward', weight: 3, run: updateReward },
  { name: 'delete a reward', weight: 1, run: deleteOneReward },
  { name: 'create a customer', weight: 3, run: createCustomer },
  { name: 'update a customer', weight: 5, run: updateCustomer },
  { name: 'enrol', weight: 4, run: enrolCustomer },
  { name: 'stamp', weight: 30, run: stampCard },
  { name: 'stamp by receipt', weight: 8, run: stampByReceipt },
  { name: 'repeat a receipt', weight: 4, run: repeatReceipt },
  { name: 'reverse a receipt', weight: 4, run: reverseOneReceipt },
  { name: 'use a receipt on another card', weight: 3, run: reuseReceipt },
  { name: 'adjust by receipt', weight: 3, run: adjustByReceipt },
  { name: 'redeem', weight: 14, run: redeemReward },
  { name: 'adjust', weight: 6, run: adjustCard },
  { name: 'reverse', weight: 6, run: reverseEvent },
  { name: 'stamp at the same time', weight: 2, run: stampTogether },
  { name: 'redeem at the same time', weight: 2, run: redeemTogether },
  { name: 'reverse at the same time', weight: 1, run: reverseTogether },
  { name: 'repeat at the same time', weight: 1, run: repeatTogether },
  { name: 'stamp in a batch', weight: 4, run: stampInBatch },
  { name: 'stamp with dry_run', weight: 1, run: stampDryRun },
  { name: 'read a customer card', weight: 4, run: readCustomerCard },
  { name: 'merge', weight: 3, run: mergeTwo },
  { name: 'unmerge', weight: 2, run: unmergeTwo },
  { name: 'stamp under an old path', weight: 3, run: stampUnderOldPath },
  { name: 'erase', weight: 1, run: eraseCustomer },
  { name: 'change an erased or merged customer', weight: 1, run: changeUnchangeable },
  { name: 'open a pass', weight: 2, run: openPass },
];

/** Operations on records of the whole store, which one worker plays. */
export const STORE_OPERATIONS: Operation[] = [
  { name: 'create a location', weight: 2, run: createSimpleRecord('location') },
  { name: 'create a poster', weight: 2, run: createSimpleRecord('poster') },
  { name: 'update a location or poster', weight: 4, run: updateSimpleRecord },
  { name: 'delete a location or poster', weight: 2, run: deleteSimpleRecord },
  { name: 'update the store', weight: 1, run: updateStore },
  { name: 'create a card', weight: 1, run: createCard },
];

async function createCard(worker: Worker): Promise<boolean> {
  if (worker.cards.length >= MAX_RECORDS.cards) return false;
  const { random } = worker;
  const required = random.between(4, 12);
  const initial = random.chance(0.3) ? random.between(1, 3) : 0;
  const name = worker.createName('Card');
  const card = { name, stamps_required: required, initial_stamps: initial };
  const { body } = await worker.write('POST', `${worker.store}/cards`, { card });
  const created = { id: Number(body['id']), name, required, initial };
  worker.cards.push({ ...created, expired: false, archived: false, rewards: [] });
  worker.noteEvent(`cards/${created.id}`, { type: 'card.created', name });
  await worker.expectFields(`${worker.store}/cards/${created.id}`, {
    name,
    stamps_required: required,
  });
  return true;
}

async function updateCard(worker: Worker): Promise<boolean> {
  const { random } = worker;
  const card = random.pick(worker.cards);
  if (!card) return false;
  const path = `${worker.store}/cards/${card.id}`;
  let changes: Json;
  let isChanged = true;
  if (random.chance(0.4)) {
    const wasExpired = card.expired;
    // Reactivated more often than expired, or soon nothing could be done.
    card.expired = !wasExpired && random.chance(0.4);
    isChanged = card.expired !== wasExpired;
    changes = { expires_at: card.expired ? PAST : null };
  } else {
    card.required = random.between(4, 12);
    card.name = worker.createName('Card');
    changes = { name: card.name, stamps_required: card.required };
  }
  await worker.write('PATCH', path, { card: changes });
  if (isChanged) worker.noteEvent(`cards/${card.id}`, { type: 'card.updated', name: card.name });
  await worker.expectFields(path, changes);
  return true;
}

async function archiveCard(worker: Worker): Promise<boolean> {
  const card = worker.random.pick(worker.cards);
  if (!card) return false;
  const wasArchived = card.archived;
  card.archived = !wasArchived && worker.random.chance(0.5);
  const path = `${worker.store}/cards/${card.id}`;
  const { body } = await worker.write('POST', `${path}/${card.archived ? 'archive' : 'unarchive'}`);
  if (card.archived !== wasArchived) {
    const type = card.archived ? 'card.archived' : 'card.unarchived';
    worker.noteEvent(`cards/${card.id}`, { type, name: card.name });
  }
  const archived_at = body['archived_at'];
  worker.expect(path, archived_at !== null, card.archived);
  await worker.expectFields(path, { archived_at });
  return true;
}

const getRewardPath = (worker: Worker, { id }: Reward) => `${worker.store}/rewards/${id}`;
const listRewards = ({ rewards }: Card) => rewards.filter(({ deleted }) => !deleted);

async function createReward(worker: Worker): Promise<boolean> {
  const card = worker.random.pick(worker.cards);
  if (!card || listRewards(card).length >= MAX_RECORDS.rewards) return false;
  const name = worker.createName('Reward');
  const required = worker.random.between(1, 10);
  const reward = { card_id: card.id, name, stamps_required: required };
  const { body } = await worker.write('POST', `${worker.store}/rewards`, { reward });
  const created = { id: Number(body['id']), name, required };
  const newReward = { ...created, active: true, deleted: false, redeemed: false };
  card.rewards.push(newReward);
  worker.noteEvent(`rewards/${newReward.id}`, { type: 'reward.created', name });
  await worker.expectFields(getRewardPath(worker, newReward), { name, stamps_required: required });
  return true;
}

async function updateReward(worker: Worker): Promise<boolean> {
  const card = worker.random.pick(worker.cards);
  const reward = card && worker.random.pick(listRewards(card));
  if (!reward) return false;
  const { id, name, required, active } = reward;
  reward.required = worker.random.between(1, 10);
  reward.active = worker.random.chance(0.8);
  const changes = { stamps_required: reward.required, active: reward.active };
  await worker.write('PATCH', getRewardPath(worker, reward), { reward: changes });
  if (reward.required !== required || reward.active !== active)
    worker.noteEvent(`rewards/${id}`, { type: 'reward.updated', name });
  await worker.expectFields(getRewardPath(worker, reward), changes);
  return true;
}

async function deleteOneReward(worker: Worker): Promise<boolean> {
  const card = worker.random.pick(worker.cards);
  const reward = card && worker.random.pick(listRewards(card));
  if (!reward) return false;
  await worker.write(
    'DELETE',
    getRewardPath(worker, reward),
    undefined,
    deleteReward(reward),
    NOT_FOUND,
  );
  if (reward.deleted)
    worker.noteEvent(`rewards/${reward.id}`, { type: 'reward.deleted', name: reward.name });
  await worker.expectFields(
    getRewardPath(worker, reward),
    reward.deleted ? 404 : { id: reward.id },
  );
  return true;
}

async function createCustomer(worker: Worker): Promise<boolean> {
  const firstName = worker.createName('Anna');
  const email = `${worker.createName('a').replace(' ', '')}@example.com`;
  const customer: Customer = {
    id: 0,
    firstName,
    email,
    marketing: false,
    cards: [],
    issued: [],
    everHeld: new Set(),
    mergedInto: undefined,
    merges: [],
    wasMerged: false,
    erased: false,
    events: [{ type: 'customer.created', firstName }],
  };
  const card = worker.random.chance(0.5) ? worker.random.pick(worker.cards) : undefined;
  const rejection = card && findEnrolmentRejection(customer, card);
  const { body } = await worker.write(
    'POST',
    `${worker.store}/customers`,
    { customer: { first_name: firstName, email }, ...(card && { card_id: card.id }) },
    rejection,
  );
  if (rejection) return true;
  customer.id = Number(body['id']);
  worker.customers.push(customer);
  if (card) {
    const firstCard = body['customer_card'] as Json;
    worker.expectCard(enrol(customer, card, Number(firstCard['id'])), firstCard, 'a new customer');
  }
  await worker.expectFields(`${worker.store}/customers/${customer.id}`, {
    first_name: firstName,
    email,
  });
  return true;
}

async function updateCustomer(worker: Worker): Promise<boolean> {
  const customer = worker.random.pick(worker.changeableCustomers);
  if (!customer) return false;
  const path = `${worker.store}/customers/${customer.id}`;
  const otherCustomer = worker.random.pick(worker.changeableCustomers);
  if (otherCustomer && otherCustomer !== customer && worker.random.chance(0.2)) {
    await worker.write('PATCH', path, { customer: { email: otherCustomer.email } }, ALREADY_USED);
    return true;
  }
  customer.firstName = worker.createName('Berta');
  const changes: Json = { first_name: customer.firstName };
  if (worker.random.chance(0.3)) {
    customer.email = `${worker.createName('b').replace(' ', '')}@example.com`;
    changes['email'] = customer.email;
  }
  customer.events.push({ type: 'customer.updated', firstName: customer.firstName });
  const { body } = await worker.write('PATCH', path, { customer: changes });
  worker.expect(path, [body['first_name'], body['email']], [customer.firstName, customer.email]);
  return true;
}

async function enrolCustomer(worker: Worker): Promise<boolean> {
  const customer = worker.random.pick(worker.changeableCustomers);
  const card = worker.random.pick(worker.cards);
  if (!customer || !card) return false;
  const path = `${worker.store}/customers/${customer.id}/customer_cards`;
  const rejection = findEnrolmentRejection(customer, card);
  const { body } = await worker.write('POST', path, { card_id: card.id }, rejection);
  if (!rejection) worker.expectCard(enrol(customer, card, Number(body['id'])), body, path);
  return true;
}

/** Picks a customer card, mostly one of the first few, so that some histories get long. */
function pickCard(worker: Worker): CustomerCard | undefined {
  const { customerCards, random } = worker;
  return random.chance(0.6) ? random.pick(customerCards.slice(0, 8)) : random.pick(customerCards);
}

async function stampCard(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  const stamps = worker.random.between(1, 4);
  const source = worker.random.chance(0.2) ? 'pos' : 'api';
  const rejection = stamp(customerCard, stamps, source);
  const path = `${worker.getPath(customerCard)}/stamp`;
  const { body } = await worker.write('POST', path, { stamps, source }, rejection);
  if (!rejection) worker.expectCard(customerCard, body, path);
  return true;
}

async function stampByReceipt(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  const stamps = worker.random.between(1, 4);
  const receipt: ReceiptNumber = {
    number: worker.createName('receipt'),
    stamping: undefined,
    redemption: undefined,
    stampedCards: new Set(),
  };
  if (await stampWithReceipt(worker, receipt, customerCard, stamps)) {
    worker.receiptNumbers.push(receipt);
  }
  return true;
}

/** @returns whether the card was stamped */
async function stampWithReceipt(
  worker: Worker,
  receipt: ReceiptNumber,
  customerCard: CustomerCard,
  stamps: number,
): Promise<boolean> {
  const body = { stamps, external_ref: receipt.number };
  const request = { method: 'POST', path: `${worker.getPath(customerCard)}/stamp`, body };
  const sequence = customerCard.events.length;
  const rejection = stamp(customerCard, stamps, 'api');
  const response = (await worker.send(request, rejection)).body as Json;
  if (rejection) return false;
  worker.expectCard(customerCard, response, request.path);
  addReceipt(worker, { request, response, card: customerCard.id });
  receipt.stamping = { customerCard, sequence };
  receipt.stampedCards.add(customerCard);
  worker.reversedReceipts.delete(receipt);
  return true;
}

function addReceipt(worker: Worker, receipt: Worker['receipts'][number]): void {
  worker.receipts.push(receipt);
  if (worker.receipts.length > 200) worker.receipts.shift();
}

/** RECEIPT-12, RECEIPT-15, STAMP-18 */
async function reuseReceipt(worker: Worker): Promise<boolean> {
  const receipt = worker.random.pick(worker.receiptNumbers);
  const customerCard = worker.random.pick(
    worker.customerCards.filter(({ wasMerged }) => !wasMerged),
  );
  if (!receipt?.stamping || !customerCard || receipt.stampedCards.has(customerCard)) return false;
  if (isReversed(receipt.stamping) && receipt.stampedCards.size < MAX_RECEIPT_USES) {
    await stampWithReceipt(worker, receipt, customerCard, worker.random.between(1, 4));
    return true;
  }
  const body = { stamps: 1, external_ref: receipt.number };
  const request = { method: 'POST', path: `${worker.getPath(customerCard)}/stamp`, body };
  await worker.send(request, ALREADY_USED);
  return true;
}

/** RECEIPT-16 to RECEIPT-27 */
async function reverseOneReceipt(worker: Worker): Promise<boolean> {
  const receipt = worker.random.pick(worker.receiptNumbers);
  const uses = [receipt?.stamping, receipt?.redemption];
  if (!receipt || uses.some((use) => use?.customerCard.customer.erased)) return false;
  const path = `${worker.store}/receipts/reverse`;
  const body = { external_ref: receipt.number, reason: 'a void sale' };
  const request = { method: 'POST', path, body };
  const cards = listStandingUses(receipt).map(({ customerCard }) => customerCard);
  if (cards.length === 0) {
    const { body: repeated } = await worker.send(request);
    const first = worker.reversedReceipts.get(receipt);
    if (first)
      worker.expect(request, summarizeReversal(repeated as Json), summarizeReversal(first));
    return true;
  }
  const rejection = reverseReceipt(receipt);
  const response = (await worker.send(request, rejection)).body as Json;
  if (rejection) return true;
  worker.expect(request, (response['reversed'] as string[]).length, cards.length);
  worker.reversedReceipts.set(receipt, response);
  const [first] = cards;
  if (first) worker.expectCard(first, response['customer_card'] as Json, path);
  for (const customerCard of cards) {
    await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  }
  return true;
}

function summarizeReversal({ reversed, customer_card: customerCard }: Json): unknown {
  return [reversed, (customerCard as Json)['stamps_count']];
}

/** RECEIPT-04, RECEIPT-05 */
async function adjustByReceipt(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  const stamps = worker.random.between(1, 5) * (worker.random.chance(0.5) ? 1 : -1);
  const body = { stamps, reason: 'counted again', external_ref: worker.createName('receipt') };
  const request = { method: 'POST', path: `${worker.getPath(customerCard)}/adjust`, body };
  const rejection = adjust(customerCard, stamps);
  const response = (await worker.send(request, rejection)).body as Json;
  if (rejection) return true;
  worker.expectCard(customerCard, response, request.path);
  addReceipt(worker, { request, response, card: customerCard.id });
  return true;
}

/** STAMP-16 to STAMP-19, REDEEM-16 to REDEEM-19 */
async function repeatReceipt(worker: Worker): Promise<boolean> {
  const receipt = worker.random.pick(worker.receipts);
  if (!receipt) return false;
  const { request, response } = receipt;
  if ('redemption' in response) {
    worker.expect(request, (await worker.send(request)).body, response);
  } else if (worker.random.chance(0.5)) {
    const { body } = await worker.send(request);
    worker.expect(request, (body as Json)['stamps_count'], response['stamps_count']);
  } else {
    const body = { ...(request.body as Json), stamps: 99 };
    await worker.send({ ...request, body }, ALREADY_USED);
  }
  return true;
}

async function redeemReward(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  const reward = customerCard && worker.random.pick(customerCard.card.rewards);
  if (!customerCard || !reward) return false;
  const path = `${worker.getPath(customerCard)}/redeem`;
  const rejection = redeem(customerCard, reward);
  if (worker.random.chance(0.7)) {
    const { body } = await worker.write('POST', path, { reward_id: reward.id }, rejection);
    if (!rejection) expectRedemption(worker, customerCard, reward, body);
    return true;
  }
  // A receipt that stamps were given for, on this card or another one, or a new one.
  const receipt = worker.random.chance(0.7)
    ? worker.random.pick(worker.receiptNumbers.filter((receiptNumber) => !receiptNumber.redemption))
    : undefined;
  const external_ref = receipt?.number ?? worker.createName('receipt');
  const request = { method: 'POST', path, body: { reward_id: reward.id, external_ref } };
  const response = (await worker.send(request, rejection)).body as Json;
  if (rejection) return true;
  expectRedemption(worker, customerCard, reward, response);
  addReceipt(worker, { request, response, card: customerCard.id });
  if (!receipt) return true;
  receipt.redemption = { customerCard, sequence: customerCard.events.length - 1 };
  worker.reversedReceipts.delete(receipt);
  return true;
}

function expectRedemption(
  worker: Worker,
  customerCard: CustomerCard,
  reward: Reward,
  body: Json,
): void {
  const { reward_id, stamps_spent, stamps_remaining } = body['redemption'] as Json;
  const redeemed = customerCard.events.at(-1);
  worker.expect(
    `a redemption of customer card ${customerCard.id}`,
    [reward_id, stamps_spent, stamps_remaining],
    [reward.id, redeemed && 'spent' in redeemed && redeemed.spent, customerCard.count],
  );
}

async function adjustCard(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  const stamps = worker.random.between(1, 5) * (worker.random.chance(0.5) ? 1 : -1);
  const path = `${worker.getPath(customerCard)}/adjust`;
  const rejection = adjust(customerCard, stamps);
  const { body } = await worker.write('POST', path, { stamps, reason: 'counted again' }, rejection);
  if (!rejection) worker.expectCard(customerCard, body, path);
  return true;
}

/** Picks one of the last events of a customer card: most can be reversed, and each once. */
async function pickEvent(worker: Worker) {
  const customerCard = pickCard(worker);
  if (!customerCard) return undefined;
  const { length } = customerCard.events;
  const sequence = worker.random.between(Math.max(0, length - RECENT_EVENTS), length - 1);
  if (customerCard.mergeEvents.has(sequence)) return undefined;
  const id = await worker.findEventId(customerCard, sequence);
  return {
    customerCard,
    sequence,
    path: `${worker.getPath(customerCard)}/events/${id}/reverse`,
  };
}

async function reverseEvent(worker: Worker): Promise<boolean> {
  const event = await pickEvent(worker);
  if (!event) return false;
  const { customerCard, sequence, path } = event;
  const rejection = reverse(customerCard, sequence);
  await worker.write('POST', path, { reason: 'a mistake' }, rejection, INVALID);
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

/** Sends stamps that are all the same, so that their order makes no difference. */
async function stampTogether(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard || customerCard.card.expired) return false;
  const path = `${worker.getPath(customerCard)}/stamp`;
  const requests = Array.from({ length: 5 }, () => ({
    method: 'POST',
    path,
    body: { stamps: 2 },
    key: worker.createName('key'),
  }));
  for (const request of requests) stamp(customerCard, Number(request.body.stamps), 'api');
  await Promise.all(requests.map((request) => worker.send(request)));
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

/**
 * BATCH-08, BATCH-14. The stamps are all the same: what could not be executed follows in the repetition, after the
 * others.
 */
async function stampInBatch(worker: Worker): Promise<boolean> {
  const count = worker.random.between(2, 12);
  const cards = Array.from({ length: count }, () => pickCard(worker)).filter(
    (customerCard) => customerCard !== undefined,
  );
  if (cards.length === 0) return false;
  const expected = cards.map((customerCard) => stamp(customerCard, 1, 'api')?.code ?? 'done');
  const operations = cards.map(({ id }) => ({
    operation: 'stamp',
    customer_card_id: id,
    stamps: 1,
    external_ref: worker.createName('receipt'),
  }));
  const request = { method: 'POST', path: `${worker.store}/batch`, body: { operations } };
  let outcomes: string[];
  do {
    const { results } = (await worker.send(request)).body as {
      results: { status: number; body: Json }[];
    };
    outcomes = results.map(({ status, body }) => (status === 200 ? 'done' : String(body['code'])));
  } while (outcomes.includes('unavailable'));
  worker.expect(request, outcomes, expected);
  for (const customerCard of new Set(cards)) {
    await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  }
  return true;
}

/** REDEEM-11 */
async function redeemTogether(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  const reward = customerCard && worker.random.pick(customerCard.card.rewards);
  if (!customerCard || !reward) return false;
  const path = `${worker.getPath(customerCard)}/redeem`;
  const requests = Array.from({ length: 4 }, () => ({
    method: 'POST',
    path,
    body: { reward_id: reward.id },
    key: worker.createName('key'),
  }));
  const expected = requests.map(() => redeem(customerCard, reward)?.code ?? 'done');
  const responses = await Promise.all(
    requests.map((request) => worker.client.sendUntilDone(request)),
  );
  const outcomes = responses.map(({ status, body }) =>
    status === 200 ? 'done' : String((body as Json)['code']),
  );
  worker.expect(`four times ${path}`, outcomes.sort(), expected.sort());
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

/** FIX-16 */
async function reverseTogether(worker: Worker): Promise<boolean> {
  const event = await pickEvent(worker);
  if (!event) return false;
  const { customerCard, sequence, path } = event;
  const expected = [1, 2, 3].map(() => reverse(customerCard, sequence)?.status ?? 200);
  const body = { reason: 'a mistake' };
  const responses = await Promise.all(
    expected.map(() =>
      worker.client.sendUntilDone({ method: 'POST', path, body, key: worker.createName('key') }),
    ),
  );
  worker.expect(
    `three times ${path}`,
    responses.map(({ status }) => status).sort(),
    expected.sort(),
  );
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

/** RETRY-20 */
async function repeatTogether(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  const path = `${worker.getPath(customerCard)}/stamp`;
  const request = { method: 'POST', path, body: { stamps: 1 }, key: worker.createName('key') };
  const rejection = stamp(customerCard, 1, 'api');
  const responses = await Promise.all([1, 2, 3].map(() => worker.send(request, rejection)));
  const texts = responses.map(({ text }) => text);
  worker.expect(request, [...new Set(texts)], texts.slice(0, 1));
  return true;
}

/** STAMP-38 */
async function stampDryRun(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard || customerCard.card.expired) return false;
  const path = `${worker.getPath(customerCard)}/stamp?dry_run=true`;
  const response = await worker.send({ method: 'POST', path, body: { stamps: 1 } });
  worker.expect(path, (response.body as Json)['stamps_count'], customerCard.count + 1);
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

async function readCustomerCard(worker: Worker): Promise<boolean> {
  const customerCard = pickCard(worker);
  if (!customerCard) return false;
  await worker.expectFields(worker.getPath(customerCard), toCardJson(customerCard));
  return true;
}

const getCustomerPath = (worker: Worker, { id }: Customer) => `${worker.store}/customers/${id}`;

async function mergeTwo(worker: Worker): Promise<boolean> {
  const [into, from] = worker.random.shuffle(worker.changeableCustomers);
  if (!into || !from) return false;
  const path = getCustomerPath(worker, into);
  merge(into, from);
  const { body } = await worker.write('POST', `${path}/merge`, { from_customer_id: from.id });
  expectCustomer(worker, into, body, path);
  await worker.expectFields(getCustomerPath(worker, from), {
    merged_into: into.id,
    stamp_count: 0,
  });
  return true;
}

async function unmergeTwo(worker: Worker): Promise<boolean> {
  const into = worker.random.pick(
    worker.changeableCustomers.filter(({ merges }) => merges.length > 0),
  );
  const from = into?.merges.at(-1)?.from;
  if (!into || !from) return false;
  const path = getCustomerPath(worker, into);
  unmerge(into);
  const { body } = await worker.write('POST', `${path}/unmerge`, { from_customer_id: from.id });
  expectCustomer(worker, into, body, path);
  await worker.expectFields(getCustomerPath(worker, from), {
    merged_into: null,
    stamp_count: sumStamps(from),
  });
  return true;
}

function expectCustomer(worker: Worker, customer: Customer, body: Json, what: string): void {
  const { id, merged_into, stamp_count } = body;
  worker.expect(what, [id, merged_into, stamp_count], [customer.id, null, sumStamps(customer)]);
}

/** MERGE-19: a client still has the code from before the merge. */
async function stampUnderOldPath(worker: Worker): Promise<boolean> {
  const into = worker.random.pick(
    worker.changeableCustomers.filter(({ merges }) => merges.length > 0),
  );
  const lastMerge = into && worker.random.pick(into.merges);
  const old =
    lastMerge &&
    worker.random.pick([...lastMerge.moved, ...lastMerge.added.map(({ closed }) => closed)]);
  if (!old) return false;
  const customerCard = findOpenCard(old);
  const path = `${getCustomerPath(worker, lastMerge.from)}/customer_cards/${old.id}`;
  const rejection = stamp(customerCard, 1, 'api');
  const { body } = await worker.write('POST', `${path}/stamp`, { stamps: 1 }, rejection);
  if (!rejection) worker.expectCard(customerCard, body, path);
  await worker.expectFields(path, toCardJson(customerCard));
  return true;
}

async function eraseCustomer(worker: Worker): Promise<boolean> {
  const customer = worker.random.pick(worker.customers);
  if (!customer) return false;
  const person = listPerson(customer);
  erase(customer);
  await worker.write(
    'POST',
    `${getCustomerPath(worker, customer)}/erase`,
    undefined,
    undefined,
    'done',
  );
  // Their stored responses are deleted, so their receipts are no longer repeated.
  const ids = new Set(person.flatMap(({ issued }) => issued).map(({ id }) => id));
  const remaining = worker.receipts.filter(({ card }) => !ids.has(card));
  worker.receipts.splice(0, worker.receipts.length, ...remaining);
  for (const member of person) {
    await worker.expectFields(getCustomerPath(worker, member), {
      first_name: 'Erased',
      email: null,
    });
  }
  return true;
}

/** ERASE-07, MERGE-21, MERGE-39 */
async function changeUnchangeable(worker: Worker): Promise<boolean> {
  const customer = worker.random.pick(
    worker.customers.filter((candidate) => findChangeRejection(candidate) !== undefined),
  );
  const otherCustomer = worker.random.pick(worker.changeableCustomers);
  if (!customer || !otherCustomer) return false;
  const rejection = findChangeRejection(customer);
  const path = getCustomerPath(worker, customer);
  const changes = { customer: { first_name: worker.createName('Nobody') } };
  await worker.write('PATCH', path, changes, rejection);
  const both = { from_customer_id: customer.id };
  await worker.write('POST', `${getCustomerPath(worker, otherCustomer)}/merge`, both, rejection);
  const customerCard = worker.random.pick(customer.erased ? customer.cards : []);
  if (customerCard && !customerCard.card.expired) {
    await worker.write(
      'POST',
      `${path}/customer_cards/${customerCard.id}/stamp`,
      { stamps: 1 },
      rejection,
    );
    await worker.expectFields(
      `${path}/customer_cards/${customerCard.id}`,
      toCardJson(customerCard),
    );
  }
  return true;
}

function createSimpleRecord(kind: 'location' | 'poster') {
  return async (worker: Worker): Promise<boolean> => {
    const [card] = worker.cards;
    if (!card || worker.simpleRecords.length >= MAX_RECORDS.simple) return false;
    const fields: Json =
      kind === 'location'
        ? { name: worker.createName('Shop'), address: worker.createName('Road') }
        : { card_id: card.id, title: worker.createName('Poster') };
    const { body } = await worker.write('POST', `${worker.store}/${kind}s`, { [kind]: fields });
    const record = { kind, id: Number(body['id']), fields };
    worker.simpleRecords.push(record);
    noteSimpleEvent(worker, record, 'created');
    return true;
  };
}

function noteSimpleEvent(
  worker: Worker,
  { kind, id, fields }: SimpleRecord,
  change: 'created' | 'updated' | 'deleted',
): void {
  const name = String(fields[kind === 'location' ? 'name' : 'title']);
  worker.noteEvent(`${kind}s/${id}`, { type: `${kind}.${change}`, name });
}

async function updateSimpleRecord(worker: Worker): Promise<boolean> {
  const record = worker.random.pick(worker.simpleRecords);
  if (!record) return false;
  const { kind, id, fields } = record;
  const name = kind === 'location' ? 'name' : 'title';
  fields[name] = worker.createName('Renamed');
  const path = `${worker.store}/${kind}s/${id}`;
  await worker.write('PATCH', path, { [kind]: { [name]: fields[name] } });
  noteSimpleEvent(worker, record, 'updated');
  await worker.expectFields(path, fields);
  return true;
}

async function deleteSimpleRecord(worker: Worker): Promise<boolean> {
  const record = worker.random.pick(worker.simpleRecords);
  if (!record) return false;
  worker.simpleRecords.splice(worker.simpleRecords.indexOf(record), 1);
  const path = `${worker.store}/${record.kind}s/${record.id}`;
  await worker.write('DELETE', path, undefined, undefined, NOT_FOUND);
  noteSimpleEvent(worker, record, 'deleted');
  await worker.expectFields(path, 404);
  return true;
}

async function updateStore(worker: Worker): Promise<boolean> {
  const changes = { store_name: worker.createName('Store') };
  await worker.write('PATCH', worker.store, { account: changes });
  worker.noteEvent(STORE, { type: 'store.updated', name: changes.store_name });
  await worker.expectFields(worker.store, changes);
  return true;
}
