import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import {
  Client,
  startService,
  type ApiResponse,
  type Service,
} from '../support/services/service.js';

/** Merging while clients of two apis stamp both customers, and while one of the apis is killed. */

const SLOW = 300_000;

let service: Service;
let store: Client;
let program: Program;
let second: Client;
let people = 0;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  await startSecond();
}, SLOW);
afterEach(verify, SLOW);
afterAll(async () => {
  await program.kill('SIGTERM');
  await service.stop();
}, SLOW);

async function startSecond(): Promise<void> {
  ({ program, second } = await startSecondApi(service, store));
}

async function verify(): Promise<void> {
  const environment = createTestEnvironment(service.database.url, service.environment);
  const check = startProgram('dist/apps/cli/verify.js', environment);
  expect({ code: await check.exitCode, output: check.output() }).toEqual({
    code: 0,
    output: expect.stringContaining('every read model matches'),
  });
}

async function createCard(): Promise<CardJson> {
  const card = { name: 'Coffee', stamps_required: 10 };
  return (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
}

type Person = { id: number; path: string; card: string };

async function enrolNew({ id: card_id }: CardJson): Promise<Person> {
  const customer = { first_name: 'Ada', email: `tills${++people}@mail.example` };
  const { body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer,
    card_id,
  });
  const path = `${store.store}/customers/${body.id}`;
  return { id: body.id, path, card: `${path}/customer_cards/${body.customer_card?.id}` };
}

/** Repeats the request after a 503: others have won every race for ten seconds, and nothing was written. */
const actUntilDone = (
  client: Client,
  action: 'merge' | 'unmerge',
  into: Person,
  from: Person,
): Promise<ApiResponse<CustomerJson>> =>
  eventually(
    () => actOnce(client, action, into, from),
    ({ status }) => status !== 503,
  );
const actOnce = (
  client: Client,
  action: 'merge' | 'unmerge',
  into: Person,
  from: Person,
  headers: Record<string, string> = {},
): Promise<ApiResponse<CustomerJson>> =>
  client.send('POST', `${into.path}/${action}`, { from_customer_id: from.id }, headers);
const sumStamps = async (...persons: Person[]) => {
  let sum = 0;
  for (const { path } of persons) sum += (await store.get<CustomerJson>(path)).body.stamp_count;
  return sum;
};

/** Stamps the cards through both apis until `stop` is called. @returns how many stamps succeeded, from `stop` */
function startStamping(cards: string[]): { stop: () => Promise<number> } {
  let stamping = true;
  const stampCount = [store, second].flatMap((client) =>
    cards.map(async (card) => {
      let count = 0;
      while (stamping) {
        const { status, text } = await client.stamp(card);
        expect([[200, 503], text]).toEqual([expect.arrayContaining([status]), text]);
        if (status === 200) count++;
      }
      return count;
    }),
  );
  return {
    stop: async () => {
      stamping = false;
      return (await Promise.all(stampCount)).reduce((sum, count) => sum + count, 0);
    },
  };
}

describe('while clients of two apis stamp both customers', () => {
  it(
    'merging and unmerging neither loses nor doubles a stamp',
    async () => {
      for (let round = 0; round < 2; round++) {
        const card = await createCard();
        const [one, two] = [await enrolNew(card), await enrolNew(card)];
        const stamping = startStamping([one.card, two.card]);
        const steps = [
          () => actUntilDone(store, 'merge', one, two),
          () => actUntilDone(second, 'unmerge', one, two),
          () => actUntilDone(second, 'merge', two, one),
          () => actUntilDone(store, 'unmerge', two, one),
          () => actUntilDone(store, 'merge', one, two),
        ];
        for (const step of steps) {
          const { status, text } = await step();
          expect([status, text]).toEqual([200, expect.anything()]);
        }
        const stampCount = await stamping.stop();
        expect(await sumStamps(one)).toBe(stampCount);
        expect((await actUntilDone(second, 'unmerge', one, two)).status).toBe(200);
        expect(await sumStamps(one, two)).toBe(stampCount);
      }
    },
    SLOW,
  );

  it(
    'merging in both directions at once succeeds in one and gets a 422 in the other',
    async () => {
      for (let round = 0; round < 3; round++) {
        const card = await createCard();
        const [one, two] = [await enrolNew(card), await enrolNew(card)];
        const stamping = startStamping([one.card, two.card]);
        const responses = await Promise.all([
          actUntilDone(store, 'merge', one, two),
          actUntilDone(second, 'merge', two, one),
        ]);
        expect(responses.map(({ status }) => status).sort()).toEqual([200, 422]);
        expect(await stamping.stop()).toBe(await sumStamps(one, two));
      }
    },
    SLOW,
  );

  it(
    'an enrolment during a merge counts for the surviving customer or gets a 422',
    async () => {
      for (let round = 0; round < 3; round++) {
        const [one, two] = [await enrolNew(await createCard()), await enrolNew(await createCard())];
        const cards = await Promise.all([createCard(), createCard(), createCard()]);
        const [mergeResponse, ...enrolments] = await Promise.all([
          actUntilDone(store, 'merge', one, two),
          ...cards.map(({ id: card_id }) =>
            second.post<{ id: number; code?: string }>(`${two.path}/customer_cards`, { card_id }),
          ),
        ]);
        expect(mergeResponse.status).toBe(200);
        const cardIds = (await store.get<CustomerJson>(one.path)).body.customer_cards.map(
          ({ id }) => id,
        );
        const acceptedEnrolments = enrolments.filter(({ status }) => status === 201);
        const refusedEnrolments = enrolments.filter(
          (response) => !acceptedEnrolments.includes(response),
        );
        expect(cardIds).toEqual(
          expect.arrayContaining(acceptedEnrolments.map(({ body }) => body.id)),
        );
        expect(cardIds).toHaveLength(2 + acceptedEnrolments.length);
        expect(refusedEnrolments.map(({ status, body }) => [status, body.code])).toEqual(
          refusedEnrolments.map(() => [422, 'customer_merged']),
        );
      }
    },
    SLOW,
  );
});

describe('after the api that merges was killed', () => {
  const countKeys = async () =>
    (await service.database.query('select from es.stored_responses')).rowCount ?? 0;
  const atOnce = () => Promise.resolve();
  const untilKeyIsReserved = async (_merged: Person, before: number) => {
    await eventually(countKeys, (count) => count > before);
  };
  const untilMerged = async ({ id }: Person) => {
    const find = () =>
      service.database.query(
        `select from customers where id = $1 and state -> 'mergedInto' <> 'null'`,
        [id],
      );
    await eventually(find, ({ rowCount }) => rowCount === 1);
  };

  it(
    'a retry with the same Idempotency-Key merges the customers exactly once',
    async () => {
      for (const waitForMoment of [atOnce, untilKeyIsReserved, untilMerged]) {
        const card = await createCard();
        const [one, two] = [await enrolNew(card), await enrolNew(card)];
        for (const [person, stamps] of [
          [one, 4],
          [two, 3],
        ] as const) {
          await store.stamp(person.card, stamps);
        }
        const headers = { 'idempotency-key': randomUUID() };
        const keyCount = await countKeys();
        const lostRequest = actOnce(second, 'merge', one, two, headers).catch(() => undefined);
        await waitForMoment(two, keyCount);
        await program.kill('SIGKILL');
        await lostRequest;
        // Expires the lease of the killed process.
        const query = (text: string) => service.database.query(text);
        await query(`update es.intents set leased_until = now() - interval '1 hour'`);
        const { body } = await eventually(
          () => actOnce(store, 'merge', one, two, headers),
          ({ status }) => status !== 409 && status !== 503,
        );
        expect(body).toMatchObject({ id: one.id, stamp_count: 7 });
        expect((await store.stamp(two.card)).status).toBe(200);
        expect(await sumStamps(one, two)).toBe(8);
        await startSecond();
      }
    },
    SLOW,
  );
});
