import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { createTestEnvironment } from '../support/database/database.js';
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

/** Runs a command of the CLI. @returns its output */
async function cli(command: string, input?: string): Promise<string> {
  const { environment, database } = service;
  const settings = createTestEnvironment(database.url, environment);
  const program = startProgram('dist/apps/cli/cli.js', settings, [command], input);
  expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
  return program.output();
}

async function createPerson() {
  const { customer, path: card } = await enrol(store);
  const path = `${store.store}/customers/${customer.id}`;
  return {
    id: customer.id,
    card,
    erase: () => store.post(`${path}/erase`),
    show: async () => (await store.get<CustomerJson>(path)).body,
  };
}

const findKey = async (id: number): Promise<Buffer | undefined> =>
  (
    await service.database.query<{ wrapped: Buffer }>(
      'select wrapped from personal_keys where subject_id = $1',
      [id],
    )
  ).rows[0]?.wrapped;

describe('inkpad erasure:repeat', () => {
  it(
    'erases every customer in its input from lists and logs, ignores other lines, and counts unknown customers',
    async () => {
      const [before, since] = [await createPerson(), await createPerson()];
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
      const output = await cli('erasure:repeat', [...lines, ...log].join('\n'));
      expect(JSON.parse(output)).toEqual({ erased: 2, unknown: 1 });
      expect((await since.show()).erased_at).not.toBeNull();
      expect(await findKey(since.id)).toBeUndefined();
    },
    SLOW,
  );

  it(
    'destroys the key of an erased customer that a restored backup brought back',
    async () => {
      const person = await createPerson();
      const key = await findKey(person.id);
      await person.erase();
      await service.database.query(
        'insert into personal_keys (subject_id, wrapped) values ($1, $2)',
        [person.id, key],
      );
      expect(JSON.parse(await cli('erasure:repeat'))).toEqual({ erased: 1, unknown: 0 });
      expect(await findKey(person.id)).toBeUndefined();
      expect((await store.stamp(person.card)).status).toBe(422);
    },
    SLOW,
  );
});
