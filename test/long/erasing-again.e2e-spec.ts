import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#customers/customer.dto.js';
import { testEnvironment } from '../support/database/database.js';
import { startProgram } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const SLOW = 300_000;

let service: Service;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
}, SLOW);
afterAll(() => service.stop(), SLOW);

/** A command of the CLI, with what it reads. @returns what it printed */
async function cli(command: string, input?: string): Promise<string> {
  const { environment, database } = service;
  const settings = testEnvironment(database.url, environment);
  const program = startProgram('dist/scripts/cli.js', settings, [command], input);
  expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
  return program.output();
}

async function newPerson() {
  const { customer, path: card } = await enrol(store);
  const path = `${store.store}/customers/${customer.id}`;
  return {
    id: customer.id,
    card,
    erase: () => store.post(`${path}/erase`),
    show: async () => (await store.get<CustomerJson>(path)).body,
  };
}

const keyOf = async (id: number): Promise<Buffer | undefined> =>
  (
    await service.database.query<{ wrapped: Buffer }>(
      'select wrapped from personal_keys where subject_id = $1',
      [id],
    )
  ).rows[0]?.wrapped;

describe('after a restore', () => {
  it(
    'everybody on the list of erasures is erased again, and lines that are none are passed over',
    async () => {
      const [before, since] = [await newPerson(), await newPerson()];
      await before.erase();
      const lines = (await cli('erasure:list')).trim().split('\n');
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual({
        account_id: store.accountId,
        customer_id: before.id,
        erased_at: expect.any(String),
      });
      const log = [
        'Listening',
        JSON.stringify({ message: 'GET /api/v1/status 200', account_id: 1, customer_id: 1 }),
        JSON.stringify({
          message: 'customer erased',
          account_id: store.accountId,
          customer_id: since.id,
        }),
        JSON.stringify({ account_id: store.accountId, customer_id: 999_999_999 }),
      ];
      const answer = await cli('erasure:repeat', [...lines, ...log].join('\n'));
      expect(JSON.parse(answer)).toEqual({ erased: 2, unknown: 1 });
      expect((await since.show()).erased_at).not.toBeNull();
      expect(await keyOf(since.id)).toBeUndefined();
    },
    SLOW,
  );

  it(
    'a key that came back to a history that is newer is destroyed again',
    async () => {
      const person = await newPerson();
      const key = await keyOf(person.id);
      await person.erase();
      await service.database.query(
        'insert into personal_keys (subject_id, wrapped) values ($1, $2)',
        [person.id, key],
      );
      expect(JSON.parse(await cli('erasure:repeat'))).toEqual({ erased: 1, unknown: 0 });
      expect(await keyOf(person.id)).toBeUndefined();
      expect((await store.post(`${person.card}/stamp`, { stamps: 1 })).status).toBe(422);
    },
    SLOW,
  );
});
