import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import { CustomerMatches } from '#loyalty/imports/customer-matches.service.js';
import type { ImportJson, ImportRowJson } from '#loyalty/imports/import.dto.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** Lets a dispatcher work on imports. @returns how to stop it */
function startDispatch(): () => Promise<void> {
  const stopping = new AbortController();
  const running = newImportDispatch(service).run(stopping.signal);
  const stop = () => {
    stopping.abort();
    return running;
  };
  service.onStop(stop);
  return stop;
}

const upload = async (store: Client, file: string, query = 'dry_run=true') =>
  (
    await store.send<ImportJson>('POST', `${store.store}/imports?${query}`, file, {
      'content-type': 'text/csv',
    })
  ).body;

const waitFor = async (store: Client, { id }: ImportJson, state: string) =>
  (
    await eventually(
      () => store.get<ImportJson>(`${store.store}/imports/${id}`),
      ({ body }) => body.state === state,
    )
  ).body;

const listRows = async (store: Client, { id }: ImportJson) =>
  (await store.get<ImportRowJson[]>(`${store.store}/imports/${id}/rows`)).body.map(
    ({ row, status, data }) => [row, status, data],
  );

const addCustomer = async (store: Client, customer: object) =>
  (await store.post<CustomerJson>(`${store.store}/customers`, { customer })).body;

const erase = (store: Client, { id }: { id: number }) =>
  store.post(`${store.store}/customers/${id}/erase`);

/** The rows come to as many as their counts, and the list of failed rows is as long as it says. */
async function expectCountsAddUp(store: Client, { id }: ImportJson): Promise<void> {
  const { body } = await store.get<ImportJson>(`${store.store}/imports/${id}`);
  const { rows_total: total, rows_done: done, created, updated, unchanged, failed } = body;
  expect([done, created + updated + unchanged + failed]).toEqual([total, total]);
  const { body: rows } = await store.get<ImportRowJson[]>(
    `${store.store}/imports/${id}/rows?status=failed`,
  );
  expect(rows).toHaveLength(failed);
}

const ANNA = { first_name: 'Anna', email: 'anna@example.com', phone: '+4915112345678' };
const HEADER = 'first_name,email,phone,birthday,external_id,note,code,stamps';

describe('the erasure of a customer deletes the cells of every row that', () => {
  it.each([
    ['cannot be read, beside an e-mail address', 'Anna,anna@example.com,,31.31.1990,,,,'],
    ['cannot be read, beside an address in another case', 'Anna,ANNA@Example.com,,31.31.1990,,,,'],
    ['cannot be read, beside a phone number', 'Anna,,0151 12345678,31.31.1990,,,,'],
    ['has a damaged phone number', 'Anna,,4915112345678.0,,,,,'],
    ['cannot be read, beside an external id', 'Anna,,,31.31.1990,A-17,,,'],
    ['has the address in another column', 'Anna,,,,,see anna@example.com,,'],
    ['has the number in another column', 'Anna,,,,,+49 151 12345678,,'],
    ['has two addresses', 'Anna,anna@example.com; a@example.net,,,,,,'],
    ['names another customer too', 'Anna,anna@example.com,+4915187654321,,,,,'],
    ['repeats another row', 'Anne,anna@example.com,,,,,,\nAnne,anna@example.com,,,,,,'],
    ['waits to be applied', 'Anne,anna@example.com,,,,,,'],
    ['has a card code of theirs', 'Anna,other@example.com,,,,,ANNA2345,'],
    ['cannot be read, beside a card code of theirs', 'Anna,,,31.31.1990,,,ANNA2345,'],
  ])('%s', async (_, row) => {
    const store = await service.newStore({ country: 'DE' });
    const card = await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } });
    const anna = await addCustomer(store, {
      ...ANNA,
      external_references: [{ source: 'import', external_id: 'A-17' }],
    });
    await addCustomer(store, { first_name: 'Ben', phone: '+4915187654321' });
    const stop = startDispatch();
    const first = await upload(
      store,
      'email,code\nanna@example.com,ANNA2345',
      `card_id=${card.body.id}`,
    );
    await waitFor(store, first, 'done');
    const ready = await upload(
      store,
      `${HEADER}\n${row}\nCem,cem@example.com,,,,,,`,
      `dry_run=true&card_id=${card.body.id}`,
    );
    await waitFor(store, ready, 'ready');
    await erase(store, anna);
    const rows = await listRows(store, ready);
    const others = rows.filter(([, , data]) => data !== null);
    expect(others).toEqual([
      [rows.length + 1, 'pending', expect.objectContaining({ first_name: 'Cem' })],
    ]);
    await expectCountsAddUp(store, ready);
    await store.post(`${store.store}/imports/${ready.id}/start`);
    await waitFor(store, ready, 'done');
    await expectCountsAddUp(store, ready);
    await stop();
  });

  it('was about nobody when the file was checked', async () => {
    const store = await service.newStore({ country: 'DE' });
    const stop = startDispatch();
    const ready = await upload(store, 'first_name,email\nAnna,anna@example.com');
    await waitFor(store, ready, 'ready');
    await erase(store, await addCustomer(store, ANNA));
    expect(await listRows(store, ready)).toEqual([[2, 'failed', null]]);
    await expectCountsAddUp(store, ready);
    await stop();
  });

  it('says an address that they have changed since', async () => {
    const store = await service.newStore({ country: 'DE' });
    const anna = await addCustomer(store, ANNA);
    const stop = startDispatch();
    const file = 'first_name,email,birthday\nAnna,anna@example.com,31.31.1990';
    const ready = await upload(store, file, 'dry_run=true&date_order=dmy');
    await waitFor(store, ready, 'ready');
    const customer = { email: 'new@example.com' };
    await store.send('PATCH', `${store.store}/customers/${anna.id}`, { customer });
    await erase(store, anna);
    expect(await listRows(store, ready)).toEqual([[2, 'failed', null]]);
    await stop();
  });

  it('says only the code of their card, which they got later or lost before the file was read', async () => {
    const store = await service.newStore({ country: 'DE' });
    const card = await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee' } });
    const anna = await addCustomer(store, ANNA);
    const query = `dry_run=true&card_id=${card.body.id}`;
    const stop = startDispatch();
    const early = await upload(store, 'first_name,email,code\nAnna,,ANNA2345', query);
    await waitFor(store, early, 'ready');
    const issued = await upload(
      store,
      'email,code\nanna@example.com,ANNA2345',
      `card_id=${card.body.id}`,
    );
    await waitFor(store, issued, 'done');
    await stop();
    const late = await upload(store, 'first_name,email,code\nAnna,,ANNA2345\nCem,,CEMX2345', query);
    await erase(store, anna);
    expect(await listRows(store, early)).toEqual([[2, 'failed', null]]);
    const stopAgain = startDispatch();
    await waitFor(store, late, 'ready');
    expect(await listRows(store, late)).toEqual([
      [2, 'failed', null],
      [3, 'failed', expect.objectContaining({ code: 'CEMX2345' })],
    ]);
    await expectCountsAddUp(store, late);
    await stopAgain();
  });

  it('is only in the file, which nobody has read yet', async () => {
    const store = await service.newStore({ country: 'DE' });
    const anna = await addCustomer(store, ANNA);
    const file =
      'first_name,email,birthday\nAnna,anna@example.com,\nAnna,,1990-31-31 anna@example.com\nCem,cem@example.com,';
    const checking = await upload(store, file, 'date_order=dmy');
    await erase(store, anna);
    const stop = startDispatch();
    const done = await waitFor(store, checking, 'done');
    expect(done).toMatchObject({ created: 1, failed: 2 });
    expect(await listRows(store, done)).toEqual([
      [2, 'failed', null],
      [3, 'failed', null],
      [4, 'created', null],
    ]);
    await expectCountsAddUp(store, done);
    const { body } = await store.get<CustomerListJson>(`${store.store}/customers?items=10`);
    expect(body.customers.map(({ first_name }) => first_name)).not.toContain('Anna');
    const { rows } = await service.database.query<object>(
      'select file, erased_claims as claims from imports where id = $1',
      [checking.id],
    );
    expect(rows).toEqual([{ file: null, claims: [] }]);
    await stop();
  });
});

it('a row that is read while its customer is erased creates nobody', async () => {
  const store = await service.newStore({ country: 'DE' });
  const anna = await addCustomer(store, ANNA);
  startDispatch();
  const file = 'first_name,email\nAnna,anna@example.com\nCem,cem@example.com';
  const ready = await upload(store, file);
  await waitFor(store, ready, 'ready');
  const { find } = CustomerMatches.prototype;
  jest.spyOn(CustomerMatches.prototype, 'find').mockImplementationOnce(async function (
    this: CustomerMatches,
    ...parameters
  ) {
    await erase(store, anna);
    return find.apply(this, parameters);
  });
  await store.post(`${store.store}/imports/${ready.id}/start`);
  const done = await waitFor(store, ready, 'done');
  expect(done).toMatchObject({ created: 1, failed: 1 });
  expect(await listRows(store, done)).toEqual([
    [2, 'failed', null],
    [3, 'created', null],
  ]);
  await expectCountsAddUp(store, done);
  const { body } = await store.get<CustomerListJson>(`${store.store}/customers?items=10`);
  expect(body.customers.map(({ first_name }) => first_name)).not.toContain('Anna');
});

it('a check that a stop ends goes on later, and counts each row once', async () => {
  const store = await service.newStore();
  const lines = Array.from(
    { length: 1_200 },
    (_, i) => `P${i},${i % 3 ? `p${i}@example.com` : 'no'}`,
  );
  const checking = await upload(store, ['first_name,email', ...lines].join('\n'));
  const countRows = async () =>
    (
      await service.database.query<{ count: number }>(
        'select count(*)::int as count from import_rows where import_id = $1',
        [checking.id],
      )
    ).rows[0]?.count ?? 0;
  const stop = startDispatch();
  await eventually(countRows, (count) => count > 0);
  await stop();
  startDispatch();
  const ready = await waitFor(store, checking, 'ready');
  expect(ready).toMatchObject({ created: 800, failed: 400 });
  await expectCountsAddUp(store, ready);
});

it('an id that Shopify marks as text is the id, also in the next file', async () => {
  const store = await service.newStore({ country: 'NL' });
  const header =
    'Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Phone,Phone,Accepts SMS Marketing,Note';
  const row = "'6543210987654,Anna,Berg,anna@example.com,yes,'+31201234567,'+31612345678,no,";
  startDispatch();
  const first = await waitFor(store, await upload(store, `${header}\n${row}`, ''), 'done');
  expect(first).toMatchObject({ created: 1, failed: 0 });
  const list = async () =>
    (await store.get<CustomerListJson>(`${store.store}/customers?items=10`)).body.customers;
  expect(await list()).toEqual([
    expect.objectContaining({
      phone: '+31612345678',
      marketing_consent: true,
      external_references: [expect.objectContaining({ external_id: '6543210987654' })],
    }),
  ]);
  const next = await upload(store, 'customer id,last name\n6543210987654,Berger', '');
  expect(await waitFor(store, next, 'done')).toMatchObject({ created: 0, updated: 1 });
  expect(await list()).toHaveLength(1);
});
