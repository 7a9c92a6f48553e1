import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { CardJson } from '#cards/card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#customers/customer.dto.js';
import { testEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import {
  Client,
  startService,
  type ApiResponse,
  type Service,
} from '../support/services/service.js';

/** Merging while tills of two api processes stamp both customers, and while one of the two is killed. */

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
  const environment = testEnvironment(service.database.url, service.environment);
  const check = startProgram('dist/scripts/verify.js', environment);
  expect({ code: await check.exitCode, output: check.output() }).toEqual({
    code: 0,
    output: expect.stringContaining('every read model matches'),
  });
}

async function newCard(): Promise<CardJson> {
  const card = { name: 'Coffee', stamps_required: 10 };
  return (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
}

type Person = { id: number; path: string; card: string };

async function enrolledOn({ id: card_id }: CardJson): Promise<Person> {
  const customer = { first_name: 'Ada', email: `tills${++people}@mail.example` };
  const { body } = await store.post<CreatedCustomerJson>(`${store.store}/customers`, {
    customer,
    card_id,
  });
  const path = `${store.store}/customers/${body.id}`;
  return { id: body.id, path, card: `${path}/customer_cards/${body.customer_card?.id}` };
}

/** A 503 says that others won every race for ten seconds and nothing was written: then it is sent again. */
const act = (
  client: Client,
  action: 'merge' | 'unmerge',
  into: Person,
  from: Person,
): Promise<ApiResponse<CustomerJson>> =>
  eventually(
    () => once(client, action, into, from),
    ({ status }) => status !== 503,
  );
const once = (
  client: Client,
  action: 'merge' | 'unmerge',
  into: Person,
  from: Person,
  headers: Record<string, string> = {},
): Promise<ApiResponse<CustomerJson>> =>
  client.send('POST', `${into.path}/${action}`, { from_customer_id: from.id }, headers);
const stampsOf = async (...persons: Person[]) => {
  let sum = 0;
  for (const { path } of persons) sum += (await store.get<CustomerJson>(path)).body.stamp_count;
  return sum;
};

/** Tills that stamp without a pause until they are stopped. */
function tills(cards: string[]): { stop: () => Promise<number> } {
  let open = true;
  const stamped = [store, second].flatMap((client) =>
    cards.map(async (card) => {
      let count = 0;
      while (open) {
        const { status, text } = await client.post(`${card}/stamp`, { stamps: 1 });
        expect([[200, 503], text]).toEqual([expect.arrayContaining([status]), text]);
        if (status === 200) count++;
      }
      return count;
    }),
  );
  return {
    stop: async () => {
      open = false;
      return (await Promise.all(stamped)).reduce((sum, count) => sum + count, 0);
    },
  };
}

describe('while tills of two processes stamp both customers', () => {
  it(
    'merging and unmerging loses and doubles no stamp',
    async () => {
      for (let round = 0; round < 2; round++) {
        const card = await newCard();
        const [one, two] = [await enrolledOn(card), await enrolledOn(card)];
        const open = tills([one.card, two.card]);
        const steps = [
          () => act(store, 'merge', one, two),
          () => act(second, 'unmerge', one, two),
          () => act(second, 'merge', two, one),
          () => act(store, 'unmerge', two, one),
          () => act(store, 'merge', one, two),
        ];
        for (const step of steps) {
          const { status, text } = await step();
          expect([status, text]).toEqual([200, expect.anything()]);
        }
        const stamped = await open.stop();
        expect(await stampsOf(one)).toBe(stamped);
        expect((await act(second, 'unmerge', one, two)).status).toBe(200);
        expect(await stampsOf(one, two)).toBe(stamped);
      }
    },
    SLOW,
  );

  it(
    'merging in opposite directions merges them once',
    async () => {
      for (let round = 0; round < 3; round++) {
        const card = await newCard();
        const [one, two] = [await enrolledOn(card), await enrolledOn(card)];
        const open = tills([one.card, two.card]);
        const answers = await Promise.all([
          act(store, 'merge', one, two),
          act(second, 'merge', two, one),
        ]);
        expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
        expect(await open.stop()).toBe(await stampsOf(one, two));
      }
    },
    SLOW,
  );

  it(
    'a customer is enrolled before a merge, or refused',
    async () => {
      for (let round = 0; round < 3; round++) {
        const [one, two] = [await enrolledOn(await newCard()), await enrolledOn(await newCard())];
        const cards = await Promise.all([newCard(), newCard(), newCard()]);
        const [merged, ...enrolled] = await Promise.all([
          act(store, 'merge', one, two),
          ...cards.map(({ id: card_id }) =>
            second.post<{ id: number; code?: string }>(`${two.path}/customer_cards`, { card_id }),
          ),
        ]);
        expect(merged.status).toBe(200);
        const cardIds = (await store.get<CustomerJson>(one.path)).body.customer_cards.map(
          ({ id }) => id,
        );
        const accepted = enrolled.filter(({ status }) => status === 201);
        const refused = enrolled.filter((answer) => !accepted.includes(answer));
        expect(cardIds).toEqual(expect.arrayContaining(accepted.map(({ body }) => body.id)));
        expect(cardIds).toHaveLength(2 + accepted.length);
        expect(refused.map(({ status, body }) => [status, body.code])).toEqual(
          refused.map(() => [422, 'customer_merged']),
        );
      }
    },
    SLOW,
  );
});

describe('when the process that merges is killed', () => {
  it(
    'a retry with the same Idempotency-Key finds it done, or does it, once',
    async () => {
      for (let round = 0; round < 3; round++) {
        const card = await newCard();
        const [one, two] = [await enrolledOn(card), await enrolledOn(card)];
        for (const [person, stamps] of [
          [one, 4],
          [two, 3],
        ] as const) {
          await store.post(`${person.card}/stamp`, { stamps });
        }
        const headers = { 'idempotency-key': randomUUID() };
        const lost = once(second, 'merge', one, two, headers).catch(() => undefined);
        if (round > 0) await new Promise((resolve) => setTimeout(resolve, round * 8));
        await program.kill('SIGKILL');
        await lost;
        // As if a minute had passed since.
        const query = (text: string) => service.database.query(text);
        await query(`update es.intents set leased_until = now() - interval '1 hour'`);
        const { body } = await eventually(
          () => once(store, 'merge', one, two, headers),
          ({ status }) => status !== 409 && status !== 503,
        );
        expect(body).toMatchObject({ id: one.id, stamp_count: 7 });
        expect((await store.post(`${two.card}/stamp`, { stamps: 1 })).status).toBe(200);
        expect(await stampsOf(one, two)).toBe(8);
        await startSecond();
      }
    },
    SLOW,
  );
});
