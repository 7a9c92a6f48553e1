import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerExportJson } from '#loyalty/customers/customer-export.dto.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findValues } from '../support/database/personal-data.js';
import { startProgram } from '../support/services/program.js';
import type { Received } from '../support/emulators/webhook-receiver.js';
import {
  startService,
  type ApiResponse,
  type Client,
  type LocalService,
} from '../support/services/service.js';
import { CUSTOMER_EVENTS, subscribe, useWebhooks } from '../support/services/webhook-dispatcher.js';

// Erases customers whose data were copied to another customer by a merge.

const SLOW = 300_000;

let service: LocalService;
let environment: NodeJS.ProcessEnv;
let store: Client;
const { receive, startDispatcher } = useWebhooks(() => service);

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  environment = createTestEnvironment(service.database.url, service.environment);
  store = await service.newStore();
}, SLOW);
afterAll(() => service.stop(), SLOW);

type Person = { id: number; path: string; card: string; values: string[] };

let people = 0;

/** Creates a customer with values that occur nowhere by chance. Only a `full` one has fields for a survivor to take over. */
async function createPerson({ id: card_id }: CardJson, full: boolean): Promise<Person> {
  const n = `${++people}q7X`;
  const phone = `+49151999${String(people).padStart(5, '7')}`;
  const birthday = `19${String(30 + people)}-02-03`;
  const fields = {
    first_name: `Xanthippe${n}`,
    metadata: { [`allergy${n}`]: `pistachio${n}` },
    external_references: [{ source: 'till', external_id: `till${n}`, metadata: { t: `tier${n}` } }],
    ...(full
      ? { last_name: `Sloot${n}`, email: `e${n}@sloot.example`, phone, birthday }
      : { email: `e${n}@berg.example` }),
  };
  const customer = expectSuccess(
    await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
      customer: fields,
      card_id,
    }),
  );
  const path = `${store.store}/customers/${customer.id}`;
  const values = [
    `Xanthippe${n}`,
    `e${n}@`,
    `allergy${n}`,
    `pistachio${n}`,
    `till${n}`,
    `tier${n}`,
  ];
  return {
    id: customer.id,
    path,
    card: `${path}/customer_cards/${customer.customer_card?.id}`,
    values: full ? [...values, `Sloot${n}`, phone.slice(1), birthday] : values,
  };
}

const createCard = async () =>
  expectSuccess(await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } }));
const merge = async (into: Person, from: Person, action = 'merge') => {
  const headers = { 'idempotency-key': `${action} ${into.id} ${from.id}` };
  const body = { from_customer_id: from.id };
  return expectSuccess(
    await store.send<CustomerJson>('POST', `${into.path}/${action}`, body, headers),
  );
};
const stamp = async (card: string, note: string) =>
  expectSuccess(await store.post(`${card}/stamp`, { stamps: 2, note }));
const patch = async ({ path }: Person, customer: object) =>
  expectSuccess(
    await store.send<CustomerJson>('PATCH', path, { customer }, { 'idempotency-key': `p ${path}` }),
  );
const erase = async ({ path }: Person) =>
  expect((await store.post(`${path}/erase`)).status).toBe(204);
const show = async ({ path }: Person) => expectSuccess(await store.get<CustomerJson>(path));
const find = (values: string[]) => findValues(environment, service.database, values);

function expectSuccess<T>({ status, text, body }: ApiResponse<T>): T {
  expect([status, status < 300 ? '' : text]).toEqual([status, '']);
  return body;
}

/** Waits until no place holds the values: a dispatcher still renews the planner's statistics. */
const waitUntilGone = (values: string[]) =>
  eventually(
    () => find(values),
    (places) => places.length === 0,
  );

async function verify(): Promise<void> {
  const check = startProgram('dist/apps/cli/verify.js', environment);
  expect([await check.exitCode, check.output()]).toEqual([
    0,
    expect.stringContaining('every read model matches'),
  ]);
  const rebuild = startProgram('dist/apps/cli/rebuild.js', environment);
  expect([await rebuild.exitCode, rebuild.output()]).toEqual([
    0,
    expect.not.stringContaining('claimed'),
  ]);
}

const echo = (received: Received) => ({ status: 200, body: received.text });

describe('erasing a customer', () => {
  it(
    'after a merge and an unmerge removes their data from the other customer too, whose own data stay',
    async () => {
      const receiver = await receive(echo);
      await subscribe(store, receiver, { events: CUSTOMER_EVENTS });
      await startDispatcher();
      const [card, otherCard] = [await createCard(), await createCard()];
      const survivor = await createPerson(card, false);
      const gone = await createPerson(card, true);
      const further = expectSuccess(
        await store.post<{ id: number }>(`${gone.path}/customer_cards`, { card_id: otherCard.id }),
      );
      await merge(survivor, gone);
      // Writes while the survivor has the other's values: to the survivor, and to cards of both.
      await patch(survivor, {
        first_name: 'Xylophone9Z',
        metadata: { own: 'marzipan8W' },
        external_references: [{ source: 'till', external_id: 'own6V' }],
      });
      await stamp(survivor.card, 'kangaroo5T');
      await stamp(`${survivor.path}/customer_cards/${further.id}`, 'wallaby4S');
      await merge(survivor, gone, 'unmerge');
      const values = [...gone.values, 'kangaroo5T', 'wallaby4S'];
      const before = await show(survivor);
      await eventually(
        () => receiver.events.filter(({ text }) => text.includes('customer.updated')).length,
        (count) => count === 5,
      );
      for (const value of gone.values) {
        expect((await find([value])).map((where) => where.split(':')[0])).toContain('events');
      }

      await erase(gone);
      const own = [...survivor.values.slice(1), 'Xylophone9Z', 'marzipan8W', 'own6V'];
      await waitUntilGone(values);
      expect(await show(survivor)).toEqual(before);
      expect(new Set((await find(own)).map((where) => where.split(': ')[1]))).toEqual(new Set(own));
      await verify();

      // The survivor can still be changed, stamped, exported and sent in webhooks.
      const named = { customer: { last_name: 'Ypsilon3R' } };
      expectSuccess(await store.send('PATCH', survivor.path, named));
      await stamp(survivor.card, 'dingo2Q');
      const receivedCount = receiver.received.length;
      const subscriptions = `${store.store}/webhook_subscriptions`;
      const [subscription] = (await store.get<{ id: number }[]>(subscriptions)).body;
      expectSuccess(
        await store.post(`${subscriptions}/${subscription?.id}/replay`, {
          from: '2020-01-01T00:00:00Z',
        }),
      );
      await eventually(
        () => receiver.received.length,
        (count) => count >= receivedCount + 14,
      );
      const again = receiver.received.slice(receivedCount).map(({ text }) => text);
      for (const text of again) expect(values.filter((value) => text.includes(value))).toEqual([]);
      type ReceivedEvent = { type: string; data: { id: number; first_name: string } };
      const about = again
        .map((text) => JSON.parse(text) as ReceivedEvent)
        .filter(({ type, data }) => type === 'customer.updated' && data.id === survivor.id);
      expect(about.map(({ data }) => data.first_name)).toEqual(about.map(() => 'Xylophone9Z'));
      const customerExport = expectSuccess(
        await store.get<CustomerExportJson>(`${survivor.path}/export`),
      );
      expect(customerExport.customer.last_name).toBe('Ypsilon3R');
      await waitUntilGone(values);
      await verify();
    },
    SLOW,
  );

  it(
    'removes their data from every customer along a chain of undone merges',
    async () => {
      const card = await createCard();
      const [last, middle, first] = [
        await createPerson(card, false),
        await createPerson(card, false),
        await createPerson(card, true),
      ];
      await merge(middle, first);
      await merge(last, middle);
      await stamp(first.card, 'platypus1P');
      await merge(last, middle, 'unmerge');
      await merge(middle, first, 'unmerge');
      const before = [await show(last), await show(middle)];
      await erase(first);
      await waitUntilGone([...first.values, 'platypus1P']);
      expect([await show(last), await show(middle)]).toEqual(before);
      // The others can still be merged, unmerged and erased.
      await store.post(`${last.path}/merge`, { from_customer_id: middle.id });
      await store.post(`${last.path}/unmerge`, { from_customer_id: middle.id });
      expect((await show(middle)).email).toBe(before[1]?.email);
      await erase(middle);
      await waitUntilGone(middle.values);
      expect((await show(last)).email).toBe(before[0]?.email);
      await verify();
    },
    SLOW,
  );

  it(
    'removes their data from a survivor whose key was renewed by an unfinished erasure',
    async () => {
      const card = await createCard();
      const [survivor, gone] = [await createPerson(card, false), await createPerson(card, true)];
      await service.app.get(PersonalKeys).renew(store.accountId, [survivor.id]);
      await merge(survivor, gone);
      await stamp(gone.card, 'numbat6N');
      await merge(survivor, gone, 'unmerge');
      const before = await show(survivor);
      await erase(gone);
      await waitUntilGone([...gone.values, 'numbat6N']);
      expect(await show(survivor)).toEqual(before);
      await verify();
    },
    SLOW,
  );

  it(
    'removes the data of both customers of a merge, whichever of them is erased',
    async () => {
      for (const which of ['survivor', 'merged']) {
        const card = await createCard();
        const survivor = await createPerson(card, false);
        const mergedCustomer = await createPerson(card, true);
        await merge(survivor, mergedCustomer);
        await patch(survivor, { metadata: { more: `okapi0N${which}` } });
        await stamp(mergedCustomer.card, `quokka9M${which}`);
        await erase(which === 'survivor' ? survivor : mergedCustomer);
        const values = [
          ...survivor.values,
          ...mergedCustomer.values,
          `okapi0N${which}`,
          `quokka9M${which}`,
        ];
        expect(await waitUntilGone(values)).toEqual([]);
      }
      await verify();
    },
    SLOW,
  );
});
