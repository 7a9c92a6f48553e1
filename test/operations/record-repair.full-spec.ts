import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { OrphanedStreams } from '#platform/event-store/verification/orphaned-streams.js';
import { Verification, type Difference } from '#platform/event-store/verification/verification.js';
import { readModels } from '../../apps/read-models.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { fillHistory } from '../support/fixtures/mixed-history.js';
import { runAtTime } from '../support/services/clock.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Repairs read models and claims from the history, while commands change the same records. */

const REPAIR = { rows: true, claims: true, repair: true };
const CHECK = { ...REPAIR, repair: false };

let service: LocalService;
let store: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  await fillHistory(store);
});
afterAll(() => service.stop());

const query = async <R extends object>(text: string, values: unknown[] = []): Promise<R[]> =>
  (await service.database.query<R>(text, values)).rows;

/** @param afterRead runs once, after the rows were read that are then repaired */
function createVerification(afterRead = async (): Promise<void> => undefined): Verification {
  const pool = service.app.get(Pool);
  let isOver = false;
  const slowPool = Object.assign(Object.create(pool) as Pool, {
    query: async (...parameters: [string, unknown[]]) => {
      const result: unknown = await pool.query(...parameters);
      if (isOver || !parameters[0].includes('left join')) return result;
      isOver = true;
      await afterRead();
      return result;
    },
  });
  const { app } = service;
  return new Verification(slowPool, app.get(EventStore), app.get(PersonalKeys), readModels);
}

/** Verifies all records that exist, or should. */
async function verifyAll(scope: typeof REPAIR): Promise<Difference[]> {
  const { app } = service;
  const verification = createVerification();
  const differences: Difference[] = [];
  const orphans = new OrphanedStreams(app.get(Pool), app.get(EventStore), readModels);
  if (!app.get(EventStore).isInDatabase) await orphans.add(await service.history());
  for await (const { slices, unknown } of orphans.find()) {
    expect(unknown).toEqual([]);
    for (const slice of slices)
      differences.push(...(await verification.verifySlice(slice, scope)).differences);
  }
  for (const { table } of readModels) {
    const ids = (await query<{ id: number }>(`select id from ${table}`)).map(({ id }) => id);
    differences.push(...(await verification.verifySlice({ table, ids }, scope)).differences);
  }
  return differences;
}

async function readAll(): Promise<object> {
  const contents: Record<string, object[]> = {};
  for (const name of [...readModels.map(({ table }) => table), 'es.claims'])
    contents[name] = await query(`select t::text as row from ${name} t order by 1`);
  return contents;
}

const createCustomer = async (customer: object): Promise<number> => {
  const { body } = await store.post<{ id: number }>(`${store.store}/customers`, { customer });
  return body.id;
};
const erase = async (id: number) =>
  expect((await store.post(`${store.store}/customers/${id}/erase`)).status).toBe(204);
const readClaims = (ids: number[]) =>
  query<{ kind: string; stream_id: string; revision: number }>(
    'select kind, stream_id, revision from es.claims where stream_id = any ($1) order by kind, stream_id',
    [ids.map((id) => `customer-${id}`)],
  );
const repairCustomers = (ids: number[], verification = createVerification()) =>
  verification.verifySlice({ table: 'customers', ids }, REPAIR);

it('writes every read model and claim that is missing, and changes none that is right', async () => {
  const before = await readAll();
  expect(await verifyAll(REPAIR)).toEqual([]);
  expect(await readAll()).toEqual(before);
  // What erased people had claimed cannot be known any more, so such claims are left as they are.
  const erased = await query<{ id: number }>(
    `select id from customers where not exists (select from personal_keys where subject_id = customers.id)`,
  );
  expect(erased).toHaveLength(1);
  await query(
    `delete from es.claims where stream_id not in (
       select 'customer_card-' || id from customer_cards where customer_id = any ($1))`,
    [erased.map(({ id }) => id)],
  );
  for (const { table } of readModels) await query(`delete from ${table}`);
  const problems = (await verifyAll(REPAIR)).map(({ problem }) => problem);
  expect(new Set(problems)).toContain('the read model is missing');
  expect(await readAll()).toEqual(before);
  expect(await verifyAll(CHECK)).toEqual([]);
});

it('repairs what is right up to where another command has moved it since', async () => {
  const { path, customerCard } = await enrol(store);
  const { id } = customerCard;
  const stamp = async () => expect((await store.stamp(path)).status).toBe(200);
  await stamp();
  await query(`update customer_cards set balance = 77 where id = $1`, [id]);
  const verification = createVerification(async () => {
    await stamp();
    await query(`update customer_cards set balance = 88 where id = $1`, [id]);
  });
  const result = await verification.verifySlice({ table: 'customer_cards', ids: [id] }, REPAIR);
  expect(result).toMatchObject({ repaired: 1, differences: [{ table: 'customer_cards' }] });
  const rows = await query<{ balance: number }>(
    'select balance::int as balance from customer_cards where id = $1',
    [id],
  );
  expect(rows).toEqual([{ balance: 2 }]);
});

it('reports what it has repaired when the connection broke after a part of the work', async () => {
  const { customerCard } = await enrol(store);
  const slice = { table: 'customer_cards', ids: [customerCard.id] };
  for (const damage of ['update customer_cards set balance = 77', 'delete from customer_cards']) {
    await query(`${damage} where id = $1`, [customerCard.id]);
    const result = await createVerification().verifySlice(slice, REPAIR, async (work) => {
      await work();
      return work();
    });
    expect(result).toMatchObject({
      repaired: 1,
      unrepaired: 0,
      differences: [{ table: 'customer_cards' }],
    });
    expect((await createVerification().verifySlice(slice, CHECK)).differences).toEqual([]);
  }
});

it.each([
  'select from customers where id = $1 for update',
  'insert into es.claims select * from kept_claims where stream_id = $1',
])('repairs the other records while a command locks one (%s)', async (lock) => {
  const ids: number[] = [];
  for (const name of ['a', 'b', 'c'])
    ids.push(
      await createCustomer({ first_name: name, email: `${name}-${randomUUID()}@example.com` }),
    );
  const [locked = 0, ...others] = ids;
  const streams = ids.map((id) => `customer-${id}`);
  const live = await readClaims(others);
  await query('create table kept_claims as select * from es.claims where stream_id = any ($1)', [
    streams,
  ]);
  await query('grant select on kept_claims to public');
  await query('delete from es.claims where stream_id = any ($1)', [streams]);
  const client = await service.app.get(Pool).connect();
  try {
    await client.query('begin');
    await client.query(lock, [lock.includes('kept') ? `customer-${locked}` : locked]);
    expect(await repairCustomers(ids)).toMatchObject({ repaired: 2, unrepaired: 1 });
    expect(await readClaims(ids)).toEqual(live);
  } finally {
    await client.query('rollback');
    client.release();
    await query('drop table kept_claims');
  }
  expect(await repairCustomers(ids)).toMatchObject({ repaired: 1, unrepaired: 0 });
});

describe('the claims of a customer', () => {
  it('have the revision after their command, whatever X-Request-Id it came with and when', async () => {
    const id = await runAtTime('2026-05-01T10:00:00Z', async () => {
      const created = await createCustomer({ first_name: 'Fay', email: 'fay@example.com' });
      for (const change of [{ phone: '+4915112340001' }, { email: 'fay@new.example' }]) {
        const path = `${store.store}/customers/${created}`;
        const headers = { 'x-request-id': 'till-7' };
        expect((await store.send('PATCH', path, { customer: change }, headers)).status).toBe(200);
      }
      return created;
    });
    const live = await readClaims([id]);
    expect(live.map(({ revision }) => revision).sort()).toEqual([1, 2]);
    await query(`update es.claims set revision = 7 where stream_id = $1`, [`customer-${id}`]);
    const { differences } = await repairCustomers([id]);
    expect(differences.map(({ problem }) => problem.replace(/its \w+/, 'it'))).toEqual([
      'it was claimed at another revision',
      'it was claimed at another revision',
    ]);
    expect(await readClaims([id])).toEqual(live);
  });

  it('end with an erasure, also with one between the reading of the row and its repair', async () => {
    for (const damage of [
      `update customers set state = state || '{"other": 1}' where id = $1`,
      `delete from es.claims where stream_id = 'customer-' || $1::bigint`,
    ]) {
      const id = await createCustomer({ first_name: 'Dora', email: 'dora@example.com' });
      expect(await readClaims([id])).toHaveLength(1);
      await query(damage, [id]);
      await repairCustomers(
        [id],
        createVerification(() => erase(id).then(() => undefined)),
      );
      expect(await readClaims([id])).toEqual([]);
      const rows = await query<{ state: string }>(
        'select state::text as state from customers where id = $1',
        [id],
      );
      expect(rows[0]?.state).not.toContain('Dora');
      expect(rows[0]?.state).not.toContain('dora@example.com');
      expect(
        (await createVerification().verifySlice({ table: 'customers', ids: [id] }, CHECK))
          .differences,
      ).toEqual([]);
    }
  });

  it('stay with the stream that holds them if its history contains them too', async () => {
    const customer = { first_name: 'Ida', email: 'ida@example.com' };
    const id = await createCustomer(customer);
    await query('delete from es.claims where stream_id = $1', [`customer-${id}`]);
    const later = await createCustomer(customer);
    const live = await readClaims([id, later]);
    expect(live).toMatchObject([{ stream_id: `customer-${later}` }]);
    for (const order of [
      [id, later],
      [later, id],
    ]) {
      const { differences, ...result } = await repairCustomers(order);
      expect(differences).toMatchObject([
        { stream: `customer-${id}`, problem: `its email is held by customer-${later}` },
      ]);
      expect(result).toMatchObject({ repaired: 0, unrepaired: 1 });
      expect(await readClaims([id, later])).toEqual(live);
    }
    await erase(later);
    await repairCustomers([id]);
    // Two histories whose claims are both missing: one of them gets it.
    await query('delete from es.claims where stream_id = $1', [`customer-${id}`]);
    const third = await createCustomer(customer);
    await query('delete from es.claims where stream_id = $1', [`customer-${third}`]);
    expect(await repairCustomers([id, third])).toMatchObject({ repaired: 1, unrepaired: 1 });
    await erase(third);
  });

  it('stay as they are when an intent opens while they are repaired', async () => {
    const id = await createCustomer({ first_name: 'Jo', email: 'jo@example.com' });
    await query('delete from es.claims where stream_id = $1', [`customer-${id}`]);
    await query(`create function open_intent() returns trigger language plpgsql as $$ begin
      insert into es.intents (id, holder, content, leased_until) values (gen_random_uuid(), gen_random_uuid(),
        json_build_object('writes', json_build_array(json_build_object('stream', new.stream_id))), now());
      return null; end $$`);
    await query(
      'create trigger opens_intent after insert on es.claims for each row execute function open_intent()',
    );
    expect(await repairCustomers([id])).toMatchObject({ repaired: 0, unrepaired: 1 });
    await query('drop trigger opens_intent on es.claims');
    await query('drop function open_intent()');
    expect(await readClaims([id])).toEqual([]);
    expect(await repairCustomers([id])).toMatchObject({ repaired: 1, unrepaired: 0 });
  });

  it('that an erased person does not have any more are removed', async () => {
    const id = await createCustomer({ first_name: 'Gus', email: 'gus@example.com' });
    await query(
      `create table kept_claims as select * from es.claims where stream_id = 'customer-' || ${id}`,
    );
    await erase(id);
    await query('insert into es.claims select * from kept_claims');
    await query('drop table kept_claims');
    await repairCustomers([id]);
    expect(await readClaims([id])).toEqual([]);
  });

  // Several, since in the order of a database one in two would be right by chance.
  it.each([1, 2, 3, 4])('stay with whom they went over to in merge %i', async (i) => {
    const other = await createCustomer({ first_name: 'Ella', email: `ella${i}@example.com` });
    const survivor = await createCustomer({ first_name: 'Ella', phone: `+491511234567${i}` });
    const path = `${store.store}/customers/${survivor}/merge`;
    expect((await store.post(path, { from_customer_id: other })).status).toBe(200);
    const live = await readClaims([other, survivor]);
    expect(live).toHaveLength(2);
    const streams = [other, survivor].map((id) => `customer-${id}`);
    for (const damage of [
      'delete from es.claims where stream_id = any ($1)',
      `update es.claims set stream_id = '${streams[0]}' where stream_id = any ($1)`,
    ]) {
      await query(damage, [streams]);
      await repairCustomers([other, survivor]);
      await repairCustomers([other, survivor]);
      expect(await readClaims([other, survivor])).toEqual(live);
    }
  });
});
