import {
  adjust,
  deleteReward,
  enrol,
  erase,
  merge,
  personOf,
  reached,
  redeem,
  refusesChange,
  refusesEnrolment,
  reverse,
  stamp,
  stampsOf,
  unmerge,
  type Card,
  type Customer,
  type CustomerCard,
  type Refusal,
  type Reward,
} from './model.js';
import { NEWEST, shownCard, type Json, type Lane } from './lane.js';
import { openPass } from './passes.js';

/** One thing that a client does. It asks the model first, then the service, and compares. */
export type Operation = {
  name: string;
  weight: number;
  /** False: there is nothing yet to do it to. */
  run: (lane: Lane) => Promise<boolean>;
};

const PAST = '2020-01-01T00:00:00.000Z';
const MAX_RECORDS = { cards: 6, rewards: 6, plain: 12 };
const REFUSED: Refusal = { status: 422, code: 'validation_failed' };
const ALREADY_USED: Refusal = { status: 422, code: 'taken' };
const GONE: Refusal = { status: 404, code: 'not_found' };

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
  { name: 'enrol', weight: 4, run: enrolOne },
  { name: 'stamp', weight: 30, run: stampOne },
  { name: 'stamp by receipt', weight: 8, run: stampByReceipt },
  { name: 'repeat a receipt', weight: 4, run: repeatReceipt },
  { name: 'redeem', weight: 14, run: redeemOne },
  { name: 'adjust', weight: 6, run: adjustOne },
  { name: 'reverse', weight: 6, run: reverseOne },
  { name: 'stamp at the same time', weight: 2, run: stampTogether },
  { name: 'redeem at the same time', weight: 2, run: redeemTogether },
  { name: 'reverse at the same time', weight: 1, run: reverseTogether },
  { name: 'repeat at the same time', weight: 1, run: repeatTogether },
  { name: 'stamp dry', weight: 1, run: stampDry },
  { name: 'read a customer card', weight: 4, run: readOne },
  { name: 'merge', weight: 3, run: mergeTwo },
  { name: 'unmerge', weight: 2, run: unmergeTwo },
  { name: 'stamp under an old path', weight: 3, run: stampUnderOldPath },
  { name: 'erase', weight: 1, run: eraseOne },
  { name: 'change somebody who is gone', weight: 1, run: changeGone },
  { name: 'open a pass', weight: 2, run: openPass },
];

/** For what belongs to the store as a whole, of which one lane takes care. */
export const STORE_OPERATIONS: Operation[] = [
  { name: 'create a location', weight: 2, run: createPlain('location') },
  { name: 'create a poster', weight: 2, run: createPlain('poster') },
  { name: 'update a location or poster', weight: 4, run: updatePlain },
  { name: 'delete a location or poster', weight: 2, run: deletePlain },
  { name: 'update the store', weight: 1, run: updateStore },
  { name: 'create a card', weight: 1, run: createCard },
];

async function createCard(lane: Lane): Promise<boolean> {
  if (lane.cards.length >= MAX_RECORDS.cards) return false;
  const { random } = lane;
  const required = random.between(4, 12);
  const initial = random.chance(0.3) ? random.between(1, 3) : 0;
  const name = lane.fresh('Card');
  const card = { name, stamps_required: required, initial_stamps: initial };
  const { body } = await lane.write('POST', `${lane.store}/cards`, { card });
  const created = { id: Number(body['id']), name, required, initial };
  lane.cards.push({ ...created, expired: false, archived: false, rewards: [] });
  await lane.expectShown(`${lane.store}/cards/${created.id}`, { name, stamps_required: required });
  return true;
}

async function updateCard(lane: Lane): Promise<boolean> {
  const { random } = lane;
  const card = random.pick(lane.cards);
  if (!card) return false;
  const path = `${lane.store}/cards/${card.id}`;
  let changes: Json;
  if (random.chance(0.4)) {
    // Back to life sooner than to its end, or soon nothing could be done.
    card.expired = !card.expired && random.chance(0.4);
    changes = { expires_at: card.expired ? PAST : null };
  } else {
    card.required = random.between(4, 12);
    card.name = lane.fresh('Card');
    changes = { name: card.name, stamps_required: card.required };
  }
  await lane.write('PATCH', path, { card: changes });
  await lane.expectShown(path, changes);
  return true;
}

async function archiveCard(lane: Lane): Promise<boolean> {
  const card = lane.random.pick(lane.cards);
  if (!card) return false;
  card.archived = !card.archived && lane.random.chance(0.5);
  const path = `${lane.store}/cards/${card.id}`;
  const { body } = await lane.write('POST', `${path}/${card.archived ? 'archive' : 'unarchive'}`);
  const archived_at = body['archived_at'];
  lane.expect(path, archived_at !== null, card.archived);
  await lane.expectShown(path, { archived_at });
  return true;
}

const pathOfReward = (lane: Lane, { id }: Reward) => `${lane.store}/rewards/${id}`;
const existing = ({ rewards }: Card) => rewards.filter(({ deleted }) => !deleted);

async function createReward(lane: Lane): Promise<boolean> {
  const card = lane.random.pick(lane.cards);
  if (!card || existing(card).length >= MAX_RECORDS.rewards) return false;
  const name = lane.fresh('Reward');
  const required = lane.random.between(1, 10);
  const reward = { card_id: card.id, name, stamps_required: required };
  const { body } = await lane.write('POST', `${lane.store}/rewards`, { reward });
  const created = { id: Number(body['id']), name, required };
  const newReward = { ...created, active: true, deleted: false, redeemed: false };
  card.rewards.push(newReward);
  await lane.expectShown(pathOfReward(lane, newReward), { name, stamps_required: required });
  return true;
}

async function updateReward(lane: Lane): Promise<boolean> {
  const card = lane.random.pick(lane.cards);
  const reward = card && lane.random.pick(existing(card));
  if (!reward) return false;
  reward.required = lane.random.between(1, 10);
  reward.active = lane.random.chance(0.8);
  const changes = { stamps_required: reward.required, active: reward.active };
  await lane.write('PATCH', pathOfReward(lane, reward), { reward: changes });
  await lane.expectShown(pathOfReward(lane, reward), changes);
  return true;
}

async function deleteOneReward(lane: Lane): Promise<boolean> {
  const card = lane.random.pick(lane.cards);
  const reward = card && lane.random.pick(existing(card));
  if (!reward) return false;
  await lane.write('DELETE', pathOfReward(lane, reward), undefined, deleteReward(reward), GONE);
  await lane.expectShown(pathOfReward(lane, reward), reward.deleted ? 404 : { id: reward.id });
  return true;
}

async function createCustomer(lane: Lane): Promise<boolean> {
  const firstName = lane.fresh('Anna');
  const email = `${lane.fresh('a').replace(' ', '')}@example.com`;
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
  const card = lane.random.chance(0.5) ? lane.random.pick(lane.cards) : undefined;
  const refusal = card && refusesEnrolment(customer, card);
  const { body } = await lane.write(
    'POST',
    `${lane.store}/customers`,
    { customer: { first_name: firstName, email }, ...(card && { card_id: card.id }) },
    refusal,
  );
  if (refusal) return true;
  customer.id = Number(body['id']);
  lane.customers.push(customer);
  if (card) {
    const firstCard = body['customer_card'] as Json;
    lane.expectCard(enrol(customer, card, Number(firstCard['id'])), firstCard, 'a new customer');
  }
  await lane.expectShown(`${lane.store}/customers/${customer.id}`, {
    first_name: firstName,
    email,
  });
  return true;
}

async function updateCustomer(lane: Lane): Promise<boolean> {
  const customer = lane.random.pick(lane.living);
  if (!customer) return false;
  const path = `${lane.store}/customers/${customer.id}`;
  const other = lane.random.pick(lane.living);
  if (other && other !== customer && lane.random.chance(0.2)) {
    await lane.write('PATCH', path, { customer: { email: other.email } }, ALREADY_USED);
    return true;
  }
  customer.firstName = lane.fresh('Berta');
  const changes: Json = { first_name: customer.firstName };
  if (lane.random.chance(0.3)) {
    customer.email = `${lane.fresh('b').replace(' ', '')}@example.com`;
    changes['email'] = customer.email;
  }
  customer.events.push({ type: 'customer.updated', firstName: customer.firstName });
  const { body } = await lane.write('PATCH', path, { customer: changes });
  lane.expect(path, [body['first_name'], body['email']], [customer.firstName, customer.email]);
  return true;
}

async function enrolOne(lane: Lane): Promise<boolean> {
  const customer = lane.random.pick(lane.living);
  const card = lane.random.pick(lane.cards);
  if (!customer || !card) return false;
  const path = `${lane.store}/customers/${customer.id}/customer_cards`;
  const refusal = refusesEnrolment(customer, card);
  const { body } = await lane.write('POST', path, { card_id: card.id }, refusal);
  if (!refusal) lane.expectCard(enrol(customer, card, Number(body['id'])), body, path);
  return true;
}

/** Mostly one of the last few, so that some histories get long. */
function someCard(lane: Lane): CustomerCard | undefined {
  const { customerCards, random } = lane;
  return random.chance(0.6) ? random.pick(customerCards.slice(0, 8)) : random.pick(customerCards);
}

async function stampOne(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard) return false;
  const stamps = lane.random.between(1, 4);
  const source = lane.random.chance(0.2) ? 'pos' : 'api';
  const refusal = stamp(customerCard, stamps, source);
  const path = `${lane.pathOf(customerCard)}/stamp`;
  const { body } = await lane.write('POST', path, { stamps, source }, refusal);
  if (!refusal) lane.expectCard(customerCard, body, path);
  return true;
}

async function stampByReceipt(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard) return false;
  const stamps = lane.random.between(1, 4);
  const body = { stamps, external_ref: lane.fresh('receipt') };
  const request = { method: 'POST', path: `${lane.pathOf(customerCard)}/stamp`, body };
  const refusal = stamp(customerCard, stamps, 'api');
  const answer = (await lane.send(request, refusal)).body as Json;
  if (refusal) return true;
  lane.expectCard(customerCard, answer, request.path);
  lane.receipts.push({ request, answer, card: customerCard.id });
  if (lane.receipts.length > 200) lane.receipts.shift();
  return true;
}

/** STAMP-16 to STAMP-19, REDEEM-16 to REDEEM-19 */
async function repeatReceipt(lane: Lane): Promise<boolean> {
  const used = lane.random.pick(lane.receipts);
  if (!used) return false;
  const { request, answer } = used;
  if ('redemption' in answer) {
    lane.expect(request, (await lane.send(request)).body, answer);
  } else if (lane.random.chance(0.5)) {
    const { body } = await lane.send(request);
    lane.expect(request, (body as Json)['stamps_count'], answer['stamps_count']);
  } else {
    const body = { ...(request.body as Json), stamps: 99 };
    await lane.send({ ...request, body }, ALREADY_USED);
  }
  return true;
}

async function redeemOne(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  const reward = customerCard && lane.random.pick(customerCard.card.rewards);
  if (!customerCard || !reward) return false;
  const path = `${lane.pathOf(customerCard)}/redeem`;
  const refusal = redeem(customerCard, reward);
  if (lane.random.chance(0.7)) {
    const { body } = await lane.write('POST', path, { reward_id: reward.id }, refusal);
    if (!refusal) expectRedemption(lane, customerCard, reward, body);
    return true;
  }
  const body = { reward_id: reward.id, external_ref: lane.fresh('receipt') };
  const request = { method: 'POST', path, body };
  const answer = (await lane.send(request, refusal)).body as Json;
  if (refusal) return true;
  expectRedemption(lane, customerCard, reward, answer);
  lane.receipts.push({ request, answer, card: customerCard.id });
  return true;
}

function expectRedemption(
  lane: Lane,
  customerCard: CustomerCard,
  reward: Reward,
  body: Json,
): void {
  const { reward_id, stamps_spent, stamps_remaining } = body['redemption'] as Json;
  const redeemed = customerCard.events.at(-1);
  lane.expect(
    `a redemption of customer card ${customerCard.id}`,
    [reward_id, stamps_spent, stamps_remaining],
    [reward.id, redeemed && 'spent' in redeemed && redeemed.spent, customerCard.count],
  );
}

async function adjustOne(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard) return false;
  const stamps = lane.random.between(1, 5) * (lane.random.chance(0.5) ? 1 : -1);
  const path = `${lane.pathOf(customerCard)}/adjust`;
  const refusal = adjust(customerCard, stamps);
  const { body } = await lane.write('POST', path, { stamps, reason: 'counted again' }, refusal);
  if (!refusal) lane.expectCard(customerCard, body, path);
  return true;
}

/** Any of the last events of a customer card: most can be reversed, and each once. */
async function someEvent(lane: Lane) {
  const customerCard = someCard(lane);
  if (!customerCard) return undefined;
  const { length } = customerCard.events;
  const sequence = lane.random.between(Math.max(0, length - NEWEST), length - 1);
  if (customerCard.merging.has(sequence)) return undefined;
  const id = await lane.eventIdOf(customerCard, sequence);
  return {
    customerCard,
    sequence,
    path: `${lane.pathOf(customerCard)}/events/${id}/reverse`,
  };
}

async function reverseOne(lane: Lane): Promise<boolean> {
  const event = await someEvent(lane);
  if (!event) return false;
  const { customerCard, sequence, path } = event;
  const refusal = reverse(customerCard, sequence);
  await lane.write('POST', path, { reason: 'a mistake' }, refusal, REFUSED);
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

/** All of the same kind, so that their order makes no difference. */
async function stampTogether(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard || customerCard.card.expired) return false;
  const path = `${lane.pathOf(customerCard)}/stamp`;
  const requests = Array.from({ length: 5 }, () => ({
    method: 'POST',
    path,
    body: { stamps: 2 },
    key: lane.fresh('key'),
  }));
  for (const request of requests) stamp(customerCard, Number(request.body.stamps), 'api');
  await Promise.all(requests.map((request) => lane.send(request)));
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

/** REDEEM-11 */
async function redeemTogether(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  const reward = customerCard && lane.random.pick(customerCard.card.rewards);
  if (!customerCard || !reward) return false;
  const path = `${lane.pathOf(customerCard)}/redeem`;
  const requests = Array.from({ length: 4 }, () => ({
    method: 'POST',
    path,
    body: { reward_id: reward.id },
    key: lane.fresh('key'),
  }));
  const expected = requests.map(() => redeem(customerCard, reward)?.code ?? 'done');
  const answers = await Promise.all(requests.map((request) => lane.caller.settle(request)));
  const outcomes = answers.map(({ status, body }) =>
    status === 200 ? 'done' : String((body as Json)['code']),
  );
  lane.expect(`four times ${path}`, outcomes.sort(), expected.sort());
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

/** FIX-16 */
async function reverseTogether(lane: Lane): Promise<boolean> {
  const event = await someEvent(lane);
  if (!event) return false;
  const { customerCard, sequence, path } = event;
  const expected = [1, 2, 3].map(() => reverse(customerCard, sequence)?.status ?? 200);
  const body = { reason: 'a mistake' };
  const answers = await Promise.all(
    expected.map(() => lane.caller.settle({ method: 'POST', path, body, key: lane.fresh('key') })),
  );
  lane.expect(`three times ${path}`, answers.map(({ status }) => status).sort(), expected.sort());
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

/** RETRY-20 */
async function repeatTogether(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard) return false;
  const path = `${lane.pathOf(customerCard)}/stamp`;
  const request = { method: 'POST', path, body: { stamps: 1 }, key: lane.fresh('key') };
  const refusal = stamp(customerCard, 1, 'api');
  const answers = await Promise.all([1, 2, 3].map(() => lane.send(request, refusal)));
  const texts = answers.map(({ text }) => text);
  lane.expect(request, [...new Set(texts)], texts.slice(0, 1));
  return true;
}

/** STAMP-38 */
async function stampDry(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard || customerCard.card.expired) return false;
  const path = `${lane.pathOf(customerCard)}/stamp?dry_run=true`;
  const answer = await lane.send({ method: 'POST', path, body: { stamps: 1 } });
  lane.expect(path, (answer.body as Json)['stamps_count'], customerCard.count + 1);
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

async function readOne(lane: Lane): Promise<boolean> {
  const customerCard = someCard(lane);
  if (!customerCard) return false;
  await lane.expectShown(lane.pathOf(customerCard), shownCard(customerCard));
  return true;
}

const pathOfCustomer = (lane: Lane, { id }: Customer) => `${lane.store}/customers/${id}`;

async function mergeTwo(lane: Lane): Promise<boolean> {
  const [into, from] = lane.random.shuffled(lane.living);
  if (!into || !from) return false;
  const path = pathOfCustomer(lane, into);
  merge(into, from);
  const { body } = await lane.write('POST', `${path}/merge`, { from_customer_id: from.id });
  expectCustomer(lane, into, body, path);
  await lane.expectShown(pathOfCustomer(lane, from), { merged_into: into.id, stamp_count: 0 });
  return true;
}

async function unmergeTwo(lane: Lane): Promise<boolean> {
  const into = lane.random.pick(lane.living.filter(({ merges }) => merges.length > 0));
  const from = into?.merges.at(-1)?.from;
  if (!into || !from) return false;
  const path = pathOfCustomer(lane, into);
  unmerge(into);
  const { body } = await lane.write('POST', `${path}/unmerge`, { from_customer_id: from.id });
  expectCustomer(lane, into, body, path);
  await lane.expectShown(pathOfCustomer(lane, from), {
    merged_into: null,
    stamp_count: stampsOf(from),
  });
  return true;
}

function expectCustomer(lane: Lane, customer: Customer, body: Json, what: string): void {
  const { id, merged_into, stamp_count } = body;
  lane.expect(what, [id, merged_into, stamp_count], [customer.id, null, stampsOf(customer)]);
}

/** MERGE-19: the till still has what the customer showed before. */
async function stampUnderOldPath(lane: Lane): Promise<boolean> {
  const into = lane.random.pick(lane.living.filter(({ merges }) => merges.length > 0));
  const merged = into && lane.random.pick(into.merges);
  const old =
    merged && lane.random.pick([...merged.moved, ...merged.added.map(({ closed }) => closed)]);
  if (!old) return false;
  const customerCard = reached(old);
  const path = `${pathOfCustomer(lane, merged.from)}/customer_cards/${old.id}`;
  const refusal = stamp(customerCard, 1, 'api');
  const { body } = await lane.write('POST', `${path}/stamp`, { stamps: 1 }, refusal);
  if (!refusal) lane.expectCard(customerCard, body, path);
  await lane.expectShown(path, shownCard(customerCard));
  return true;
}

async function eraseOne(lane: Lane): Promise<boolean> {
  const customer = lane.random.pick(lane.customers);
  if (!customer) return false;
  const person = personOf(customer);
  erase(customer);
  await lane.write('POST', `${pathOfCustomer(lane, customer)}/erase`, undefined, undefined, 'done');
  // Their stored responses are gone, so their receipts are no longer repeated.
  const ids = new Set(person.flatMap(({ issued }) => issued).map(({ id }) => id));
  const remaining = lane.receipts.filter(({ card }) => !ids.has(card));
  lane.receipts.splice(0, lane.receipts.length, ...remaining);
  for (const one of person) {
    await lane.expectShown(pathOfCustomer(lane, one), { first_name: 'Erased', email: null });
  }
  return true;
}

/** ERASE-07, MERGE-21, MERGE-39 */
async function changeGone(lane: Lane): Promise<boolean> {
  const gone = lane.random.pick(lane.customers.filter((one) => refusesChange(one) !== undefined));
  const other = lane.random.pick(lane.living);
  if (!gone || !other) return false;
  const refusal = refusesChange(gone);
  const path = pathOfCustomer(lane, gone);
  const changes = { customer: { first_name: lane.fresh('Nobody') } };
  await lane.write('PATCH', path, changes, refusal);
  const both = { from_customer_id: gone.id };
  await lane.write('POST', `${pathOfCustomer(lane, other)}/merge`, both, refusal);
  const customerCard = lane.random.pick(gone.erased ? gone.cards : []);
  if (customerCard && !customerCard.card.expired) {
    await lane.write(
      'POST',
      `${path}/customer_cards/${customerCard.id}/stamp`,
      { stamps: 1 },
      refusal,
    );
    await lane.expectShown(`${path}/customer_cards/${customerCard.id}`, shownCard(customerCard));
  }
  return true;
}

function createPlain(kind: 'location' | 'poster') {
  return async (lane: Lane): Promise<boolean> => {
    const [card] = lane.cards;
    if (!card || lane.plain.length >= MAX_RECORDS.plain) return false;
    const fields: Json =
      kind === 'location'
        ? { name: lane.fresh('Shop'), address: lane.fresh('Road') }
        : { card_id: card.id, title: lane.fresh('Poster') };
    const { body } = await lane.write('POST', `${lane.store}/${kind}s`, { [kind]: fields });
    lane.plain.push({ kind, id: Number(body['id']), fields });
    return true;
  };
}

async function updatePlain(lane: Lane): Promise<boolean> {
  const one = lane.random.pick(lane.plain);
  if (!one) return false;
  const { kind, id, fields } = one;
  const name = kind === 'location' ? 'name' : 'title';
  fields[name] = lane.fresh('Renamed');
  const path = `${lane.store}/${kind}s/${id}`;
  await lane.write('PATCH', path, { [kind]: { [name]: fields[name] } });
  await lane.expectShown(path, fields);
  return true;
}

async function deletePlain(lane: Lane): Promise<boolean> {
  const one = lane.random.pick(lane.plain);
  if (!one) return false;
  lane.plain.splice(lane.plain.indexOf(one), 1);
  const path = `${lane.store}/${one.kind}s/${one.id}`;
  await lane.write('DELETE', path, undefined, undefined, GONE);
  await lane.expectShown(path, 404);
  return true;
}

async function updateStore(lane: Lane): Promise<boolean> {
  const changes = { store_name: lane.fresh('Store') };
  await lane.write('PATCH', lane.store, { account: changes });
  await lane.expectShown(lane.store, changes);
  return true;
}
