import { beforeAll, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ImportJson, ImportRowJson } from '#loyalty/imports/import.dto.js';
import { ImportRetention } from '#loyalty/imports/import-retention.service.js';
import { Config } from '#configuration/config.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import pg, { Pool } from 'pg';
import {
  expectFailure,
  expectCodes,
  expectRefused,
  useService,
  type ContractClient,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { cli, type ApiResponse } from '../support/services/service.js';

const service = useService();
const stopping = new AbortController();

beforeAll(() => {
  const dispatch = newImportDispatch(service.running).run(stopping.signal);
  service.running.onStop(() => {
    stopping.abort();
    return dispatch;
  });
});

type Options = { query?: Record<string, string | number | boolean>; type?: string };

function upload(
  store: ContractClient,
  file: string | Uint8Array,
  { query = {}, type = 'text/csv' }: Options = {},
): Promise<ApiResponse<ImportJson>> {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const bytes = typeof file === 'string' ? new TextEncoder().encode(file) : file;
  return store.send('POST', `${store.store}/imports?${search}`, new Uint8Array(bytes), {
    'content-type': type,
  });
}

async function waitFor(store: ContractClient, id: number, state?: string): Promise<ImportJson> {
  const { body } = await eventually(
    () => store.get<ImportJson>(`${store.store}/imports/${id}`),
    ({ body: current }) =>
      state === undefined
        ? !['checking', 'running'].includes(current.state)
        : current.state === state,
  );
  return body;
}

/** Imports a file, to its end. */
async function importFile(
  store: ContractClient,
  file: string | Uint8Array,
  options?: Options,
): Promise<ImportJson> {
  const response = await upload(store, file, options);
  expect([response.status, response.text]).toEqual([202, expect.any(String)]);
  return waitFor(store, response.body.id);
}

const counts = ({ state, created, updated, unchanged, failed }: ImportJson) => ({
  state,
  created,
  updated,
  unchanged,
  failed,
});

const listRows = async (store: ContractClient, { id }: ImportJson, status?: string) =>
  (
    await store.get<ImportRowJson[]>(
      `${store.store}/imports/${id}/rows${status === undefined ? '' : `?status=${status}`}`,
    )
  ).body;

async function listCustomers(store: ContractClient): Promise<CustomerJson[]> {
  const { body } = await store.get<CustomerListJson>(`${store.store}/customers?items=100`);
  return body.customers.sort((a, b) => a.id - b.id);
}

const newCard = async (store: ContractClient, fields: object = {}) =>
  (await store.post<CardJson>(`${store.store}/cards`, { card: { name: 'Coffee', ...fields } }))
    .body;

const addCustomer = async (store: ContractClient, customer: object) =>
  (await store.post<CustomerJson>(`${store.store}/customers`, { customer })).body;

async function undo(store: ContractClient, { id }: ImportJson): Promise<ImportJson> {
  await store.post(`${store.store}/imports/${id}/undo`);
  return waitFor(store, id, 'undone');
}

it('IMPORT-01 A file to import is 202 with the import, and then creates a customer for each row that names nobody known', async () => {
  const store = await service.newStore();
  const file = 'First name,Last name,Email\nAnna,Berg,anna@example.com\nBen,,ben@example.com\n';
  const { status, body } = await upload(store, file);
  expect([status, body.state, body.rows_total]).toEqual([202, 'checking', 2]);
  const done = await waitFor(store, body.id);
  expect(counts(done)).toEqual({
    state: 'done',
    created: 2,
    updated: 0,
    unchanged: 0,
    failed: 0,
  });
  expect(done.rows_done).toBe(2);
  const [anna, ben] = (await listCustomers(store)).sort((a, b) =>
    a.first_name < b.first_name ? -1 : 1,
  );
  expect(anna).toMatchObject({ first_name: 'Anna', last_name: 'Berg', email: 'anna@example.com' });
  expect(ben).toMatchObject({ first_name: 'Ben', last_name: null });
  const rows = await listRows(store, done);
  expect(rows.map(({ row, status: state, customer_id }) => [row, state, customer_id])).toEqual(
    expect.arrayContaining([
      [2, 'created', anna?.id],
      [3, 'created', ben?.id],
    ]),
  );
  const { body: all } = await store.get<ImportJson[]>(`${store.store}/imports`);
  expect(all).toEqual([done]);
});

it('IMPORT-02 A row whose external id, e-mail address or phone number a customer has updates that customer', async () => {
  const store = await service.newStore({ country: 'DE' });
  const byEmail = await addCustomer(store, { first_name: 'Anna', email: 'anna@example.com' });
  const byPhone = await addCustomer(store, { first_name: 'Ben', phone: '+4915112345678' });
  const byReference = await addCustomer(store, {
    first_name: 'Cem',
    email: 'cem@example.com',
    external_references: [{ source: 'till', external_id: 'A-17' }],
  });
  const done = await importFile(
    store,
    [
      'first_name,last_name,email,phone,external_id,external_source',
      ',Berg,ANNA@example.com,,,',
      'Benjamin,,,0151 12345678,,',
      ',Can,,,A-17,till',
    ].join('\n'),
  );
  expect(counts(done)).toMatchObject({ state: 'done', created: 0, updated: 3, failed: 0 });
  const [anna, ben, cem] = await listCustomers(store);
  expect(anna).toMatchObject({ id: byEmail.id, first_name: 'Anna', last_name: 'Berg' });
  expect(ben).toMatchObject({ id: byPhone.id, first_name: 'Benjamin', last_name: null });
  expect(cem).toMatchObject({ id: byReference.id, first_name: 'Cem', last_name: 'Can' });
});

it('IMPORT-03 Importing the same file again changes nothing', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store, { initial_stamps: 1 });
  const file =
    'Vorname;E-Mail;Geburtstag;Newsletter;Kundennummer;Stempel;Kartencode\n' +
    'Anna;anna@example.com;31.12.1990;ja;17;5;ABCD2345\nBen;ben@example.com;;;18;;\n';
  const first = await importFile(store, file, { query: { card_id } });
  expect(counts(first)).toMatchObject({ state: 'done', created: 2, failed: 0 });
  const before = await listCustomers(store);
  const history = await service.running.history();
  const again = await importFile(store, file, { query: { card_id } });
  expect(counts(again)).toEqual({
    state: 'done',
    created: 0,
    updated: 0,
    unchanged: 2,
    failed: 0,
  });
  expect(await listCustomers(store)).toEqual(before);
  expect(await service.running.history()).toHaveLength(history.length);
});

it('IMPORT-04 With `card_id` an import enrols customers, and gives them the stamps of the file as an adjustment', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const existing = await addCustomer(store, { first_name: 'Ben', email: 'ben@example.com' });
  const importStamps = (anna: number, ben: number) =>
    importFile(
      store,
      `first_name,email,stamps\nAnna,anna@example.com,${anna}\n,ben@example.com,${ben}`,
      { query: { card_id } },
    );
  const stamps = async () =>
    (await listCustomers(store)).map(({ first_name, stamp_count }) => [first_name, stamp_count]);
  await importStamps(7, 3);
  expect((await stamps()).sort()).toEqual([
    ['Anna', 7],
    ['Ben', 3],
  ]);
  const [card] = (await store.get<CustomerJson>(`${store.store}/customers/${existing.id}`)).body
    .customer_cards;
  await store.stamp(`${store.store}/customers/${existing.id}/customer_cards/${card?.id}`, 2);
  await importStamps(9, 1);
  expect((await stamps()).sort()).toEqual([
    ['Anna', 9],
    ['Ben', 3],
  ]);
  const { body: events } = await store.get<HistoryEntryJson[]>(
    `${store.store}/customers/${existing.id}/customer_cards/${card?.id}/events`,
  );
  expect(events.map(({ type, stamps: change }) => [type, change])).toEqual([
    ['stamp.removed', -2],
    ['stamp.earned', 2],
    ['stamp.earned', 3],
    ['customer_card.created', null],
  ]);
});

it("IMPORT-05 In the history all that an import does has the channel `import`, the token that asked for it, and a `request_id` that begins with `import-` and the import's id", async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const done = await importFile(store, 'first_name,email,stamps\nAnna,anna@example.com,2', {
    query: { card_id },
  });
  const events = (await service.running.history()).filter(
    ({ meta }) => meta.accountId === store.accountId && meta.channel === 'import',
  );
  expect(events.map(({ type, data, meta }) => [type, data['source'], meta.requestId])).toEqual([
    ['CustomerCreated', 'import', `import-${done.id}-2`],
    ['CustomerCardIssued', undefined, `import-${done.id}-2`],
    ['StampsEarned', 'adjustment', `import-${done.id}-2`],
  ]);
  expect(events.map(({ meta }) => meta.actor.type)).toEqual(['token', 'token', 'token']);
});

it('IMPORT-06 With `dry_run` the import stops in the state `ready`, with the numbers of what it would do, and nothing is changed until it is started', async () => {
  const store = await service.newStore();
  await addCustomer(store, { first_name: 'Ben', email: 'ben@example.com' });
  const file = 'first_name,email\nAnna,anna@example.com\nBenjamin,ben@example.com\nCem,none\n';
  const ready = await importFile(store, file, { query: { dry_run: true } });
  expect(counts(ready)).toEqual({
    state: 'ready',
    created: 1,
    updated: 1,
    unchanged: 0,
    failed: 1,
  });
  expect((await listCustomers(store)).map(({ first_name }) => first_name)).toEqual(['Ben']);
  expect((await listRows(store, ready)).map(({ status }) => status)).toEqual([
    'pending',
    'pending',
    'failed',
  ]);
  const { status, body } = await store.post<ImportJson>(`${store.store}/imports/${ready.id}/start`);
  expect([status, body.state]).toEqual([200, 'running']);
  const done = await waitFor(store, ready.id, 'done');
  expect([counts(done), done.rows_done]).toEqual([
    { state: 'done', created: 1, updated: 1, unchanged: 0, failed: 1 },
    3,
  ]);
  expect((await listCustomers(store)).map(({ first_name }) => first_name).sort()).toEqual([
    'Anna',
    'Benjamin',
  ]);
});

it('IMPORT-38 A dry run counts what its start then does: rows that change nothing and rows with errors included', async () => {
  const store = await service.newStore({ country: 'DE' });
  const { id: card_id } = await newCard(store);
  const anna = await addCustomer(store, { first_name: 'Anna', email: 'anna@example.com' });
  const ben = await addCustomer(store, {
    first_name: 'Ben',
    email: 'ben@example.com',
    phone: '+4915112345678',
    external_references: [{ source: 'import', external_id: '17' }],
  });
  const first = 'first_name,email,stamps\nCem,cem@example.com,3\nDora,dora@example.com,2';
  await importFile(store, first, { query: { card_id } });
  const dora = (await listCustomers(store)).find(({ first_name }) => first_name === 'Dora');
  const [card] = (await store.get<CustomerJson>(`${store.store}/customers/${dora?.id}`)).body
    .customer_cards;
  await store.post(`${store.store}/customers/${anna.id}/merge`, { from_customer_id: ben.id });
  await store.patch(`${store.store}/customers/${dora?.id}`, {
    customer: { marketing_consent: true },
  });
  await store.patch(`${store.store}/customers/${dora?.id}`, {
    customer: { marketing_consent: false },
  });
  const file = [
    'first_name,email,phone,external_id,stamps,code,newsletter',
    'Anna,ben@example.com,,,,,',
    'Cem,cem@example.com,,,3,,',
    `Dora,dora@example.com,,,,${card?.code},yes`,
    'Emil,emil@example.com,,,,,',
  ].join('\n');
  const again = [file, ',,015112345678,,,,', 'Ann,,,17,4,,', 'Cem,cem@example.com,,,5,,'];
  const tries = [file, `${again.join('\n')}`, 'email,code\ndora@example.com,ABCD2345'];
  for (const [i, content] of tries.entries()) {
    const ready = await importFile(store, content, { query: { card_id, dry_run: true } });
    await store.post(`${store.store}/imports/${ready.id}/start`);
    const done = await waitFor(store, ready.id, 'done');
    expect([i, counts(done)]).toEqual([i, { ...counts(ready), state: 'done' }]);
  }
  const people = (await listCustomers(store)).map(({ first_name, email }) => [first_name, email]);
  expect(people).toContainEqual(['Anna', 'anna@example.com']);
});

it('IMPORT-07 A row with errors changes nothing and stops no other', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const file = [
    'first_name,email,birthday,sms_consent,stamps',
    'Anna,anna@example.com,,,',
    '',
    'Ben,ben(at)example.com,1990-02-30,perhaps,1001',
    ',new@example.com,,,',
    'Dora,,,,',
    'Eve,eve@example.com,2999-01-01,,2',
  ].join('\n');
  const done = await importFile(store, file, { query: { card_id } });
  expect(counts(done)).toMatchObject({ state: 'done', created: 1, failed: 4 });
  const rows = await listRows(store, done, 'failed');
  expect(rows.map(({ row, errors }) => [row, Object.keys(errors ?? {}).sort()])).toEqual([
    [4, ['birthday', 'email', 'sms_consent', 'stamps']],
    [5, ['first_name']],
    [6, ['base']],
    [7, ['birthday']],
  ]);
  expect(rows[0]?.data).toEqual({
    first_name: 'Ben',
    email: 'ben(at)example.com',
    birthday: '1990-02-30',
    sms_consent: 'perhaps',
    stamps: '1001',
  });
  const { body: page, headers } = await store.get<ImportRowJson[]>(
    `${store.store}/imports/${done.id}/rows?status=failed&limit=2`,
  );
  expect([page.map(({ row }) => row), headers.get('link')]).toEqual([
    [4, 5],
    expect.stringContaining('rel="next"'),
  ]);
  expectRefused(await store.get(`${store.store}/imports/${done.id}/rows?status=lost`), 'status');
});

it('IMPORT-08 With `Accept: text/csv` the rows of an import are a file with its columns and the errors, which can be corrected and imported again', async () => {
  const store = await service.newStore();
  const done = await importFile(
    store,
    'Vorname;E-Mail;Notiz\nAnna;anna(at)example.com;=1+1\nBen;ben@example.com;"a;b"\n',
  );
  const download = (query: string) =>
    fetch(`${store.baseUrl}${store.store}/imports/${done.id}/rows${query}`, {
      headers: { authorization: `Bearer ${store.token}`, accept: 'text/csv' },
    });
  const response = await download('?status=failed');
  const bytes = new Uint8Array(await response.arrayBuffer());
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/csv; charset=utf-8',
  ]);
  expect(response.headers.get('content-disposition')).toBe(
    `attachment; filename="import-${done.id}.csv"`,
  );
  expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)).toBe(
    '\uFEFFVorname;E-Mail;Notiz;import_row;import_status;import_errors\r\n' +
      "Anna;anna(at)example.com;'=1+1;2;failed;email must be an e-mail address\r\n",
  );
  const corrected = new TextDecoder().decode(bytes).replace('(at)', '@');
  expect(counts(await importFile(store, corrected))).toMatchObject({ created: 1, failed: 0 });
});

it('IMPORT-09 CSV is read in UTF-8 with and without a byte order mark, UTF-16 and Windows-1252, separated by commas, semicolons or tabs', async () => {
  const names = 'Vorname|E-Mail\nJürgen "Jo" Groß|jo@example.com\n';
  const latin = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));
  const wide = (text: string, mark: boolean) =>
    Buffer.from(`${mark ? '\uFEFF' : ''}${text}`, 'utf16le');
  const cases: [Uint8Array, string, string][] = [
    [new TextEncoder().encode(names.replaceAll('|', ',')), 'utf-8', ','],
    [new TextEncoder().encode(`\uFEFF${names.replaceAll('|', ';')}`), 'utf-8', ';'],
    [wide(names.replaceAll('|', '\t'), true), 'utf-16le', '\t'],
    [wide(names.replaceAll('|', '\t'), true).swap16(), 'utf-16be', '\t'],
    [wide(names.replaceAll('|', ';'), false), 'utf-16le', ';'],
    [latin(names.replaceAll('|', ';').replaceAll('\n', '\r\n')), 'windows-1252', ';'],
    [latin(`sep=;\r\n${names.replaceAll('|', ';')}`), 'windows-1252', ';'],
  ];
  for (const [bytes, encoding, separator] of cases) {
    const store = await service.newStore();
    const done = await importFile(store, bytes);
    expect([done.encoding, done.separator, done.created]).toEqual([encoding, separator, 1]);
    expect((await listCustomers(store))[0]?.first_name).toBe('Jürgen "Jo" Groß');
  }
});

it('IMPORT-10 Columns are recognized by headers in English, German, French, Spanish and Dutch, and `mapping` overrides that', async () => {
  const store = await service.newStore();
  const fieldsOf = async (header: string, query: Options['query'] = {}) => {
    const { body } = await upload(store, `${header}\nx@example.com\n`, {
      query: { dry_run: true, ...query },
    });
    await waitFor(store, body.id);
    await service.running.database.query(`update imports set state = 'failed' where id = $1`, [
      body.id,
    ]);
    return body.columns.map(({ field }) => field);
  };
  expect(await fieldsOf('E-Mail-Adresse;Vorname;Name;Handynummer;Geburtsdatum;Bemerkung')).toEqual([
    'email',
    'first_name',
    'last_name',
    'phone',
    'birthday',
    null,
  ]);
  expect(await fieldsOf('Adresse e-mail,Prénom,Nom,Téléphone,Date de naissance')).toEqual([
    'email',
    'first_name',
    'last_name',
    'phone',
    'birthday',
  ]);
  expect(await fieldsOf('Correo electrónico,Nombre,Apellidos,Móvil,Fecha de nacimiento')).toEqual([
    'email',
    'first_name',
    'last_name',
    'phone',
    'birthday',
  ]);
  expect(await fieldsOf('E-mailadres,Voornaam,Achternaam,Telefoonnummer,Geboortedatum')).toEqual([
    'email',
    'first_name',
    'last_name',
    'phone',
    'birthday',
  ]);
  expect(await fieldsOf('EMAIL,Name')).toEqual(['email', 'first_name']);
  const dutch = await fieldsOf('E-mail,Voornaam,Naam');
  expect(dutch).toEqual(['email', 'first_name', 'last_name']);
  const mapping = JSON.stringify({ A: 'email', Email: null, B: 'last_name' });
  expect(await fieldsOf('A,Email,B,Last name,Vorname', { mapping })).toEqual([
    'email',
    null,
    'last_name',
    null,
    'first_name',
  ]);
});

it('IMPORT-11 A mapping that names an unknown column or field, two columns for one field, and a file without any of external id, e-mail address and phone number are 422 `mapping`', async () => {
  const store = await service.newStore();
  const refuse = async (header: string, mapping?: string) =>
    expectRefused(
      await upload(store, `${header}\nx@example.com`, {
        query: mapping === undefined ? {} : { mapping },
      }),
      'mapping',
    );
  await refuse('email,name', '{"Phone":"phone"}');
  await refuse('email,name', '{"name":"nickname"}');
  await refuse('email,name', '{"email":"email","name":"email"}');
  await refuse('email,name', '["email"]');
  await refuse('email,name', '{');
  await refuse('email,E-Mail');
  await refuse('email,name,name');
  await refuse('first_name,birthday');
});

it('IMPORT-12 Birthdays are read as 2000-12-31, 31.12.2000, 31/12/2000 and 12/31/2000', async () => {
  const importDates = async (...dates: string[]) => {
    const store = await service.newStore();
    const lines = dates.map((date, i) => `P${i},p${i}@example.com,${date}`);
    await importFile(store, ['first_name,email,birthday', ...lines].join('\n'));
    const customers = await listCustomers(store);
    return customers
      .sort((a, b) => (a.first_name < b.first_name ? -1 : 1))
      .map(({ birthday }) => birthday);
  };
  expect(await importDates('2000-12-31', '31.12.2000', '1.2.2000')).toEqual([
    '2000-12-31',
    '2000-12-31',
    '2000-02-01',
  ]);
  expect(await importDates('31/12/2000', '01/02/2000')).toEqual(['2000-12-31', '2000-02-01']);
  expect(await importDates('12/31/2000', '01/02/2000')).toEqual(['2000-12-31', '2000-01-02']);
  expect(await importDates('05/05/2000')).toEqual(['2000-05-05']);
  expect(await importDates('17-5-1990', '1990/05/18', '19900519')).toEqual([
    '1990-05-17',
    '1990-05-18',
    '1990-05-19',
  ]);
});

it('IMPORT-13 A file in which no date shows whether the day or the month comes first is 422 `birthday`, which names a row, unless `date_order` says it', async () => {
  const store = await service.newStore();
  const file = 'first_name,email,birthday\nA,a@example.com,\nB,b@example.com,03/04/2000\n';
  const response = await upload(store, file);
  expectRefused(response, 'birthday');
  expect(response.text).toContain('row 3');
  const both = await upload(
    store,
    'first_name,email,birthday\nA,a@example.com,31/12/2000\nB,b@example.com,12/31/2000\n',
  );
  expectRefused(both, 'birthday');
  expect(both.text).toMatch(/row 2.*row 3/);
  const done = await importFile(store, file, { query: { date_order: 'mdy' } });
  expect([done.created, done.date_order]).toEqual([2, 'mdy']);
  expect((await listCustomers(store)).map(({ birthday }) => birthday)).toContain('2000-03-04');
});

it('IMPORT-14 A phone number or an external id that a spreadsheet has changed, as in `1.51E+11` or `595600.0`, is an error of its row', async () => {
  const store = await service.newStore();
  const done = await importFile(
    store,
    'first_name;phone\nAnna;1,51E+11\nBen;1.51E+11\nDan;4915112345678.0\nEve;4915112345678,00\nCem;+49.151.123.456.78\n',
  );
  expect(counts(done)).toMatchObject({ created: 1, failed: 4 });
  for (const { errors } of await listRows(store, done, 'failed')) {
    expect(errors).toEqual({ phone: ['looks like a spreadsheet has changed it'] });
  }
  const { id: card_id } = await newCard(store);
  const rows = [
    ['595600.0', 'A', 'B', ''],
    ['595600,00', 'A', 'B', ''],
    ['1.51E+11', 'A', 'B', ''],
    ['#N/A', 'A', 'B', ''],
    ['nan', 'A', 'B', ''],
    ['1', 'None', 'B', ''],
    ['2', 'A', '#REF!', ''],
    ['3', 'A', 'B', '5.0'],
    ['4', 'A', 'B', '#####'],
    ['000069816', 'Nan', 'Null', '5'],
  ].map((cells, i) => [...cells, `g${i}@example.com`].map((cell) => `"${cell}"`).join(';'));
  const ids = await importFile(
    store,
    `external_id;first_name;last_name;stamps;email\n${rows.join('\n')}`,
    { query: { card_id } },
  );
  expect(counts(ids)).toMatchObject({ created: 1, failed: 9 });
  const errors = (await listRows(store, ids, 'failed')).map((row) => row.errors);
  expect(errors.map((error) => Object.keys(error ?? {}))).toEqual([
    ...Array.from({ length: 5 }, () => ['external_id']),
    ['first_name'],
    ['last_name'],
    ['stamps'],
    ['stamps'],
  ]);
  // What programs send as JSON is theirs.
  const opaque = { source: 'till', external_id: '595600.0' };
  const customer = { first_name: 'A', email: 'o@example.com', external_references: [opaque] };
  expect(await addCustomer(store, customer)).toMatchObject({ external_references: [opaque] });
});

it('IMPORT-15 A second row about the same customer is an error of that row, even if the first one has errors', async () => {
  const store = await service.newStore();
  const existing = { first_name: 'Cem', email: 'cem@example.com', phone: '+4915112345678' };
  await addCustomer(store, existing);
  const done = await importFile(
    store,
    'first_name,email,phone\nAnna,anna@example.com,\nAnn,Anna@Example.com,\nC,cem@example.com,\nC,,+4915112345678\n',
  );
  expect(counts(done)).toMatchObject({ created: 1, updated: 1, failed: 2 });
  expect((await listRows(store, done, 'failed')).map(({ row, errors }) => [row, errors])).toEqual([
    [3, { base: ['Row 2 is about the same customer'] }],
    [5, { base: ['Row 4 is about the same customer'] }],
  ]);
  const file = 'first_name,email,sms_consent\n,dora@example.com,no\nDora,dora@example.com,yes\n';
  for (let times = 1; times <= 2; times++) {
    const refused = await importFile(store, file);
    expect(counts(refused)).toMatchObject({ created: 0, failed: 2 });
    expect((await listRows(store, refused)).map(({ row, errors }) => [row, errors])).toEqual([
      [2, { first_name: ['is required for a new customer'] }],
      [3, { base: ['Row 2 is about the same customer'] }],
    ]);
  }
});

it('IMPORT-16 A row whose values belong to different customers is an error of that row', async () => {
  const store = await service.newStore();
  const anna = await addCustomer(store, { first_name: 'Anna', email: 'anna@example.com' });
  const ben = await addCustomer(store, { first_name: 'Ben', phone: '+4915112345678' });
  const done = await importFile(store, 'email,phone\nanna@example.com,+4915112345678\n');
  expect((await listRows(store, done)).map(({ status, errors }) => [status, errors])).toEqual([
    ['failed', { base: [`The row has values of different customers: ${anna.id}, ${ben.id}`] }],
  ]);
});

it('IMPORT-17 A file that cannot be read, has no rows or too many is 422 `base`, and one that is too large is 413', async () => {
  const store = await service.newStore();
  const refuse = async (file: string | Uint8Array, field = 'base', options?: Options) =>
    expectRefused(await upload(store, file, options), field);
  await refuse('');
  await refuse('first_name,email\n');
  await refuse('first_name,email\nAnna,a@example.com,more\n');
  await refuse('first_name,email\n"Anna,a@example.com\n');
  await refuse(Uint8Array.of(0xff, 0xfe, 0x00, 0xd8, 0x41));
  await refuse(`email\n${'a@example.com\n'.repeat(50_001)}`);
  await refuse('{"email":"a@example.com"}\n{', 'base', { type: 'application/x-ndjson' });
  await refuse('{"email":["a@example.com"]}', 'base', { type: 'application/x-ndjson' });
  await refuse('email,stamps\na@example.com,2\n', 'card_id');
  const { id: card_id } = await newCard(store);
  await store.post(`${store.store}/cards/${card_id}/archive`);
  await refuse('email\na@example.com\n', 'card_id', { query: { card_id } });
  const unknown = await upload(store, 'email\na@example.com\n', {
    query: { card_id: 999_999_999 },
  });
  expectFailure(unknown, 404, 'not_found');
  const large = await upload(store, new Uint8Array(20 * 1024 * 1024 + 1));
  expectFailure(large, 413, 'payload_too_large');
  const json = await upload(store, '{"email":"a@example.com"}', { type: 'application/json' });
  expectFailure(json, 415, 'unsupported_media_type');
  for (const type of ['text/csv', 'application/octet-stream']) {
    const elsewhere = await store.send('POST', `${store.store}/customers`, new Uint8Array([65]), {
      'content-type': type,
    });
    expectFailure(elsewhere, 415, 'unsupported_media_type');
  }
});

it('IMPORT-18 NDJSON is read like CSV, with the keys as headers', async () => {
  const store = await service.newStore();
  const lines = [
    { first_name: 'Anna', email: 'anna@example.com', marketing_consent: true, external_id: 17 },
    { email: 'ben@example.com', first_name: 'Ben', phone: null },
  ];
  const done = await importFile(store, lines.map((line) => JSON.stringify(line)).join('\n'), {
    type: 'application/x-ndjson',
  });
  expect([done.format, done.created, done.separator]).toEqual(['ndjson', 2, null]);
  const anna = (await listCustomers(store)).find(({ first_name }) => first_name === 'Anna');
  expect(anna).toMatchObject({
    marketing_consent: true,
    external_references: [{ source: 'import', external_id: '17' }],
  });
});

it('IMPORT-19 A new card gets the `code` of its row', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const file =
    'first_name,email,code\nAnna,anna@example.com,abcd2345\nBen,ben@example.com,O0\nCem,cem@example.com,\n';
  const done = await importFile(store, file, { query: { card_id } });
  expect(counts(done)).toMatchObject({ created: 2, failed: 1 });
  const { body } = await store.get<CustomerCardDetailJson>(
    `${store.store}/customer_cards/by_code/ABCD2345`,
  );
  expect(body.code).toBe('ABCD2345');
  const otherFile =
    'first_name,email,code\nDora,dora@example.com,ABCD2345\n,cem@example.com,EFGH2345\n';
  const again = await importFile(store, otherFile, { query: { card_id } });
  expect((await listRows(store, again)).map(({ errors }) => Object.keys(errors ?? {}))).toEqual([
    ['code'],
    ['code'],
  ]);
});

it('IMPORT-20 A consent that a customer has withdrawn is not given again by a file', async () => {
  const store = await service.newStore();
  const withdrew = await addCustomer(store, {
    first_name: 'Anna',
    email: 'anna@example.com',
    marketing_consent: true,
  });
  await store.patch(`${store.store}/customers/${withdrew.id}`, {
    customer: { marketing_consent: false },
  });
  await addCustomer(store, { first_name: 'Ben', email: 'ben@example.com' });
  const file = 'email,marketing_consent\nanna@example.com,yes\nben@example.com,yes\n';
  expect(counts(await importFile(store, file))).toMatchObject({ updated: 1, unchanged: 1 });
  expect((await listCustomers(store)).map((customer) => customer.marketing_consent)).toEqual([
    false,
    true,
  ]);
});

it('IMPORT-21 An undo erases the customers whom the import created, takes its stamps back, and restores the fields that it changed', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const existing = await addCustomer(store, {
    first_name: 'Ben',
    last_name: 'Busch',
    email: 'ben@example.com',
  });
  const done = await importFile(
    store,
    'first_name,last_name,email,phone,stamps\nAnna,,anna@example.com,,5\nBenjamin,Berg,ben@example.com,+4915112345678,3\n',
    { query: { card_id } },
  );
  expect(counts(done)).toMatchObject({ created: 1, updated: 1 });
  const undone = await undo(store, done);
  expect([undone.undone, undone.refused, undone.rows_done]).toEqual([2, 0, 2]);
  const { body } = await store.get<CustomerJson>(`${store.store}/customers/${existing.id}`);
  expect(body).toMatchObject({
    first_name: 'Ben',
    last_name: 'Busch',
    phone: null,
    stamp_count: 0,
  });
  const anna = (await listCustomers(store)).find(({ id }) => id !== existing.id);
  expect(anna).toMatchObject({ first_name: 'Erased', email: null, stamp_count: 0 });
  expect((await listRows(store, done)).map(({ status }) => status)).toEqual(['undone', 'undone']);
  const again = await importFile(store, 'first_name,email,stamps\nAnna,anna@example.com,5\n', {
    query: { card_id },
  });
  expect(counts(again)).toMatchObject({ created: 1, failed: 0 });
});

it('IMPORT-22 An undo leaves rows as they are whose customers were used since, and lists them with the status `refused`', async () => {
  const store = await service.newStore();
  const { id: card_id } = await newCard(store);
  const existing = await addCustomer(store, { first_name: 'Cem', email: 'cem@example.com' });
  const done = await importFile(
    store,
    'first_name,email,stamps\nAnna,anna@example.com,5\nBen,ben@example.com,5\nC,cem@example.com,1\n',
    { query: { card_id } },
  );
  const anna = (await listCustomers(store)).find(({ first_name }) => first_name === 'Anna');
  const card = anna?.customer_cards[0];
  await store.stamp(`${store.store}/customers/${anna?.id}/customer_cards/${card?.id}`);
  await store.patch(`${store.store}/customers/${existing.id}`, {
    customer: { first_name: 'Cemal' },
  });
  const undone = await undo(store, done);
  expect([undone.undone, undone.refused]).toEqual([1, 2]);
  const refused = await listRows(store, done, 'refused');
  expect(refused.map(({ row, customer_id, errors }) => [row, customer_id, errors])).toEqual([
    [2, anna?.id, { base: ['The customer was used since the import'] }],
    [4, existing.id, { first_name: ['was changed since the import'] }],
  ]);
  const names = (await listCustomers(store)).map(({ first_name, stamp_count }) => [
    first_name,
    stamp_count,
  ]);
  expect(names.sort()).toEqual([
    ['Anna', 6],
    ['Cemal', 1],
    ['Erased', 0],
  ]);
});

it('IMPORT-23 Starting or undoing an import twice does so once', async () => {
  const store = await service.newStore();
  const ready = await importFile(store, 'first_name,email\nAnna,a@example.com\n', {
    query: { dry_run: true },
  });
  const path = `${store.store}/imports/${ready.id}`;
  expectRefused(await store.post(`${path}/undo`), 'base');
  const started = await Promise.all([store.post(`${path}/start`), store.post(`${path}/start`)]);
  expect(started.map(({ status }) => status)).toEqual([200, 200]);
  await waitFor(store, ready.id, 'done');
  expect((await store.post<ImportJson>(`${path}/start`)).body.state).toBe('done');
  const undos = await Promise.all([store.post(`${path}/undo`), store.post(`${path}/undo`)]);
  expect(undos.map(({ status }) => status)).toEqual([200, 200]);
  const undone = await waitFor(store, ready.id, 'undone');
  expect([undone.undone, (await store.post<ImportJson>(`${path}/undo`)).body]).toEqual([1, undone]);
  expectRefused(await store.post(`${path}/start`), 'base');
  const { body: audit } = await store.get<{ type: string }[]>(`${store.store}/audit`);
  expect(audit.map(({ type }) => type).filter((type) => type.startsWith('import.'))).toEqual([
    'import.undone',
    'import.started',
    'import.created',
  ]);
});

it('IMPORT-24 Erasing a customer deletes the cells of every row that has an e-mail address, phone number, external id or card code of theirs, whatever became of the row, also if nobody has read the file yet', async () => {
  const store = await service.newStore();
  const anna = await addCustomer(store, { first_name: 'Anna', email: 'anna@example.com' });
  const file = 'first_name,email\nAnne,anna@example.com\nBen,none\n';
  const ready = await importFile(store, file, { query: { dry_run: true } });
  const { rows: files } = await service.running.database.query(
    'select file from imports where id = $1',
    [ready.id],
  );
  expect(files).toEqual([{ file: null }]);
  await store.post(`${store.store}/customers/${anna.id}/erase`);
  expect((await listRows(store, ready)).map(({ status, data }) => [status, data])).toEqual([
    ['failed', null],
    ['failed', { first_name: 'Ben', email: 'none' }],
  ]);
  const pool = service.running.app.get(Pool);
  const { app } = service.running;
  const retention = new ImportRetention(pool, app.get(LeaderLock), app.get(Config));
  expect(await retention.deleteOldest()).toBe(false);
  await pool.query(`update imports set created_at = now() - interval '31 days' where id = $1`, [
    ready.id,
  ]);
  expect(await retention.deleteOldest()).toBe(true);
  expect(await listRows(store, ready)).toEqual([]);
  const { body } = await store.get<ImportJson>(`${store.store}/imports/${ready.id}`);
  expect([body.state, body.error]).toEqual([
    'failed',
    'The import was not finished within 30 days',
  ]);
});

it('IMPORT-25 A store has at most 10 unfinished imports, and 10 that wait for a start; more are 422 `base`, code `limit_reached`', async () => {
  const store = await service.newStore();
  const query = { dry_run: true };
  const file = 'first_name,email\nAnna,a@example.com\n';
  const trials: number[] = [];
  for (let i = 0; i < 10; i++) trials.push((await upload(store, file, { query })).body.id);
  const refused = await upload(store, file, { query });
  expectRefused(refused, 'base', 'limit_reached');
  expect(refused.text).toContain('/discard');
  expect(await importFile(store, file)).toMatchObject({ state: 'done', created: 1 });
  const [first = 0, second = 0] = trials;
  await waitFor(store, first, 'ready');
  await store.post(`${store.store}/imports/${first}/discard`);
  expect((await upload(store, file, { query })).status).toBe(202);
  expectRefused(await upload(store, file, { query }), 'base', 'limit_reached');
  await waitFor(store, second, 'ready');
  await store.post(`${store.store}/imports/${second}/start`);
  await waitFor(store, second, 'done');
  expect((await upload(store, file, { query })).status).toBe(202);
});

it('IMPORT-26 An import of another store is 404, and staff may not import', async () => {
  const [store, otherStore] = [await service.newStore(), await service.newStore()];
  const { id } = await importFile(store, 'first_name,email\nAnna,a@example.com\n');
  const path = `${otherStore.store}/imports/${id}`;
  for (const response of [
    await otherStore.get(path),
    await otherStore.get(`${path}/rows`),
    await otherStore.get(`${path}/rows?status=lost`),
    await otherStore.post(`${path}/start`),
    await otherStore.post(`${path}/discard`),
    await otherStore.post(`${path}/undo`),
  ]) {
    expectFailure(response, 404, 'not_found');
  }
  expect((await otherStore.get(`${otherStore.store}/imports`)).body).toEqual([]);
  const email = 'staff@imports.example';
  await service.running.execute(new CreateUser(cli, email, 'Staff', 'correct horse'));
  await service.running.execute(new AddMember(cli, store.accountId, email, 'staff'));
  const { token } = await service.running.execute(new CreateToken(cli, email, 'staff'));
  const staff = store.as(token);
  for (const response of [
    await upload(staff, 'first_name,email\nBen,b@example.com\n'),
    await staff.get(`${store.store}/imports`),
    await staff.get(`${store.store}/imports/${id}`),
    await staff.get(`${store.store}/imports/${id}/rows`),
    await staff.post(`${store.store}/imports/${id}/start`),
    await staff.post(`${store.store}/imports/${id}/discard`),
    await staff.post(`${store.store}/imports/${id}/undo`),
  ]) {
    expectFailure(response, 403, 'forbidden');
  }
});

it('IMPORT-27 A file may also be `application/octet-stream`: its first character shows whether it is NDJSON', async () => {
  const type = 'application/octet-stream';
  const csv = 'first_name,email\nAnna,anna@example.com\n';
  const quoted = '"first_name";"email"\n"{Anna}";anna@example.com\n';
  const ndjson = '{"first_name":"Anna","email":"anna@example.com"}\n';
  for (const [file, format] of [
    [csv, 'csv'],
    [quoted, 'csv'],
    [`\uFEFF${csv}`, 'csv'],
    [Buffer.from(`\uFEFF${csv}`, 'utf16le'), 'csv'],
    [ndjson, 'ndjson'],
    [`\uFEFF\n ${ndjson}`, 'ndjson'],
  ] as const) {
    const store = await service.newStore();
    const done = await importFile(store, file, { type });
    expect([done.format, done.created, done.failed]).toEqual([format, 1, 0]);
  }
  const store = await service.newStore();
  expectRefused(await upload(store, '', { type }), 'base');
  expectRefused(await upload(store, Uint8Array.of(0, 1, 2, 3), { type }), 'base');
  for (const otherType of ['application/json', 'image/png', 'text/html']) {
    expectFailure(await upload(store, csv, { type: otherType }), 415, 'unsupported_media_type');
  }
});

const toBytes = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

it('IMPORT-28 The `charset` of the media type is the encoding of the file', async () => {
  // Łukasz;Żuk
  const polish = toBytes('first_name;last_name;email\n\xa3ukasz;\xafuk;l@example.com\n');
  for (const type of [
    'text/csv; charset=windows-1250',
    'text/csv; header=present; Charset="CP1250"',
    'text/plain;charset=x-cp1250',
    'application/octet-stream; charset=windows-1250',
  ]) {
    const store = await service.newStore();
    const done = await importFile(store, polish, { type });
    expect([done.encoding, done.created]).toEqual(['windows-1250', 1]);
    expect(await listCustomers(store)).toMatchObject([{ first_name: 'Łukasz', last_name: 'Żuk' }]);
  }
  const store = await service.newStore();
  const lines = toBytes('{"first_name":"\xa3ukasz","email":"l@example.com"}\n');
  const type = 'application/x-ndjson; charset=windows-1250';
  expect(await importFile(store, lines, { type })).toMatchObject({ encoding: 'windows-1250' });
  expect(await listCustomers(store)).toMatchObject([{ first_name: 'Łukasz' }]);
  const utf8 = 'first_name,email\nJürgen,j@example.com\n';
  for (const charset of ['utf-8', 'UTF8', '"utf-8"']) {
    const done = await importFile(store, utf8, { type: `text/csv; charset=${charset}` });
    expect(done).toMatchObject({ encoding: 'utf-8', failed: 0 });
  }
  for (const charset of ['cp850', 'utf-7', 'none', '""']) {
    const response = await upload(store, utf8, { type: `text/csv; charset=${charset}` });
    expectFailure(response, 415, 'unsupported_media_type');
  }
});

it('IMPORT-29 Bytes that are not of the encoding, and a few that are not UTF-8 in a file that otherwise is, are 422 `base`, which names the row', async () => {
  const store = await service.newStore();
  const rows = (name: string) =>
    Array.from({ length: 100 }, (_, i) => `${name},m${i}@example.com\n`).join('');
  const mixed = Buffer.concat([
    Buffer.from(`first_name,email\n${rows('Müller')}`),
    Buffer.from('Müller,x@example.com\n', 'latin1'),
    Buffer.from(rows('Müller')),
  ]);
  const stray = await upload(store, mixed);
  expectRefused(stray, 'base');
  expect(stray.text).toContain('Row 102 has a character');
  const latin = toBytes('first_name,email\nAnna,a@example.com\nJ\xfcrgen,j@example.com\n');
  const declared = await upload(store, latin, { type: 'text/csv; charset=utf-8' });
  expectRefused(declared, 'base');
  expect(declared.text).toContain('Row 3 has a character');
  const marked = Buffer.from('\uFEFFfirst_name,email\n');
  expectRefused(await upload(store, marked, { type: 'text/csv; charset=windows-1250' }), 'base');
  const western = await importFile(store, latin);
  expect([western.encoding, western.created]).toEqual(['windows-1252', 2]);
});

it('IMPORT-30 CSV is read as RFC 4180 defines it', async () => {
  const cases: [string, string, string | null][] = [
    ['email,first_name,last_name\na@example.com,Ann,"Miller"\r\n', 'Ann', 'Miller'],
    ['email,first_name,last_name\r\na@example.com,Ann,Miller\n', 'Ann', 'Miller'],
    ['email,first_name,last_name\ra@example.com,Ann,"Miller"\r\n', 'Ann', 'Miller'],
    ['email,first_name,last_name\na@example.com, "Ann", "Miller"', 'Ann', 'Miller'],
    ['email;first_name;last_name\na@example.com;"Ann" ; "Miller" \r\n', 'Ann', 'Miller'],
    [
      'email,first_name,last_name\na@example.com,Ann "Annie" Smith,5" pipe',
      'Ann "Annie" Smith',
      '5" pipe',
    ],
    [
      'email,first_name,last_name\na@example.com,"Ann\nMaria","Miller, ""B"" C"',
      'Ann\nMaria',
      'Miller, "B" C',
    ],
    ['email,first_name,last_name\na@example.com,="Ann","=""007"""', 'Ann', '007'],
  ];
  for (const [file, first_name, last_name] of cases) {
    const store = await service.newStore();
    const done = await importFile(store, file);
    expect([file, counts(done)]).toEqual([
      file,
      expect.objectContaining({ created: 1, failed: 0 }),
    ]);
    expect(await listCustomers(store)).toMatchObject([{ first_name, last_name }]);
  }
  const store = await service.newStore();
  const ids = await importFile(store, 'first_name,email,external_id\nA,a@example.com,="00123"\r\n');
  expect(counts(ids)).toMatchObject({ created: 1, failed: 0 });
  const again = await importFile(store, 'first_name,external_id\r\nA,"00123"\n');
  expect(counts(again)).toMatchObject({ unchanged: 1, failed: 0 });
});

it('IMPORT-31 A cell that still begins and ends with a quotation mark is an error of its row, as is one with `U+FFFD`, for which a character was lost', async () => {
  const store = await service.newStore();
  const done = await importFile(
    store,
    'email,first_name,external_id\na@example.com,"""Ann""",1\nb@example.com,Ben,""2""\nc@example.com,M\uFFFDller,3\nd@example.com,Dora,4\n',
  );
  expect(counts(done)).toMatchObject({ created: 1, failed: 3 });
  expect((await listRows(store, done, 'failed')).map(({ row, errors }) => [row, errors])).toEqual([
    [2, { first_name: ['is still in quotation marks'] }],
    [3, { external_id: ['is still in quotation marks'] }],
    [4, { first_name: ['has a character that was lost when the file was written'] }],
  ]);
});

it('IMPORT-32 Of the apostrophes with which exports and the rows of an import guard formulas, CSV loses one, so that an exported file can be imported again', async () => {
  const [store, otherStore] = [await service.newStore(), await service.newStore()];
  const customers = [
    { first_name: '@anna', last_name: "'=1+1", email: '-a@example.com', phone: '+4915112345678' },
    { first_name: "''＝1", last_name: 'x;=HYPERLINK("a")', email: 'b@example.com', phone: null },
    { first_name: '="007"', last_name: "x;'@a", email: 'c@example.com', phone: null },
    { first_name: "'Anna", last_name: "Rock 'n' roll", email: 'd@example.com', phone: null },
  ];
  for (const customer of customers) await addCustomer(store, customer);
  const download = async (path: string) => {
    const headers = { authorization: `Bearer ${store.token}`, accept: 'text/csv' };
    const response = await fetch(`${store.baseUrl}${store.store}${path}`, { headers });
    return new Uint8Array(await response.arrayBuffer());
  };
  const query = { mapping: JSON.stringify({ id: null, stamp_count: null }) };
  const exported = await download('/exports/customers.csv');
  expect(counts(await importFile(store, exported, { query }))).toMatchObject({
    unchanged: 4,
    failed: 0,
  });
  expect(counts(await importFile(otherStore, exported, { query }))).toMatchObject({ created: 4 });
  expect(await listCustomers(otherStore)).toMatchObject(customers);
  const rows = [
    { first_name: "'=1", last_name: '＠b', email: 'none', phone: '+4915112345679' },
    { first_name: 'x;-1', last_name: '@c', email: 'none', phone: '+4915112345680' },
  ];
  const refused = await importFile(store, rows.map((row) => JSON.stringify(row)).join('\n'), {
    type: 'application/x-ndjson',
  });
  const csv = new TextDecoder().decode(await download(`/imports/${refused.id}/rows`));
  const corrected = csv.replaceAll(',none,', ',,');
  expect(counts(await importFile(store, corrected))).toMatchObject({ created: 2, failed: 0 });
  expect((await listCustomers(store)).slice(4)).toMatchObject(
    rows.map((row) => ({ ...row, email: null })),
  );
});

it('IMPORT-33 A workbook, an archive, a picture, a PDF, a web page and a blank first row are 422 `base`, which says so, whatever the media type', async () => {
  const store = await service.newStore();
  const filled = (hex: string) => Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(500, 1)]);
  for (const [file, message] of [
    [filled('504b0304'), 'This is an Excel workbook'],
    [filled('504b0506'), 'This is an Excel workbook'],
    [filled('d0cf11e0a1b11ae1'), 'This is an Excel workbook'],
    [filled('255044462d312e37'), 'This is not a text file'],
    [filled('89504e470d0a1a0a'), 'This is not a text file'],
    [filled('1f8b08'), 'This is not a text file'],
    [filled('0001020304'), 'This is not a text file'],
    [Buffer.from('<table><tr><td>email</td></tr></table>'), 'This is a web page'],
    [
      Buffer.from('\r\nemail,first_name\r\na@example.com,A\r\n'),
      'The first row of the file is blank',
    ],
    [Buffer.from(';;\nemail;first_name\n'), 'The first row of the file is blank'],
    [Buffer.from('\uFEFF\nemail\n', 'utf16le'), 'The first row of the file is blank'],
  ] as const) {
    for (const type of ['text/csv', 'application/octet-stream', 'text/csv; charset=utf-8']) {
      if (type.includes('utf-8') && message.includes('blank')) continue;
      const response = await upload(store, file, { type });
      expectRefused(response, 'base');
      expect(response.text).toContain(message);
    }
  }
});

it('IMPORT-34 `POST …/:id/discard` deletes the rows of an import that waits for a start, and ends it in the state `failed`', async () => {
  const store = await service.newStore();
  const file = 'first_name,email\nAnna,a@example.com\n';
  const ready = await importFile(store, file, { query: { dry_run: true } });
  const path = `${store.store}/imports/${ready.id}`;
  const both = await Promise.all([
    store.post<ImportJson>(`${path}/discard`),
    store.post<ImportJson>(`${path}/discard`),
  ]);
  expect(both.map(({ status, body }) => [status, body.state])).toEqual([
    [200, 'failed'],
    [200, 'failed'],
  ]);
  const again = await store.post<ImportJson>(`${path}/discard`);
  expect([again.status, again.body]).toEqual([200, both[0].body]);
  expect(await listRows(store, ready)).toEqual([]);
  expect(await listCustomers(store)).toEqual([]);
  expectRefused(await store.post(`${path}/start`), 'base');
  const { body: audit } = await store.get<{ type: string }[]>(`${store.store}/audit`);
  expect(audit.filter(({ type }) => type === 'import.discarded')).toHaveLength(1);
  const done = await importFile(store, file);
  expectRefused(await store.post(`${store.store}/imports/${done.id}/discard`), 'base');
  const started = await importFile(store, file, { query: { dry_run: true } });
  const holder = new pg.Client(service.running.database.ownerUrl);
  await holder.connect();
  try {
    // Keeps the rows from being applied.
    await holder.query('begin');
    await holder.query('lock table import_rows in exclusive mode');
    await store.post(`${store.store}/imports/${started.id}/start`);
    expectRefused(await store.post(`${store.store}/imports/${started.id}/discard`), 'base');
  } finally {
    await holder.end();
  }
  await waitFor(store, started.id, 'done');
});

it('IMPORT-35 Rows of more than 1,048,576 characters, and JSON of more than 16 levels, are 422 `base`, which names the row', async () => {
  const store = await service.newStore();
  const ndjson = 'application/x-ndjson';
  for (const [file, type, message] of [
    [Buffer.alloc(20 * 1024 * 1024, ','), 'text/csv', 'Row 1 cannot be read'],
    [Buffer.alloc(20 * 1024 * 1024, '"'), 'text/csv', 'Row 1 cannot be read'],
    [Buffer.alloc(20 * 1024 * 1024, 'x'), 'text/csv', 'Row 1 cannot be read'],
    [Buffer.alloc(20 * 1024 * 1024, 'x'), ndjson, 'Row 1 cannot be read'],
    [Buffer.from(`${','.repeat(199_999)}\n`), 'text/csv', 'The first row of the file is blank'],
    [Buffer.from(`${'a,'.repeat(201)}\n"open`), 'text/csv', 'more than 200 columns'],
    [Buffer.from(`{"email":${'['.repeat(500_000)}`), ndjson, 'Row 1 has more than 16 levels'],
  ] as const) {
    const response = await upload(store, file, { type });
    expectRefused(response, 'base');
    expect(response.text).toContain(message);
  }
});

it("IMPORT-36 Stores take turns: files of one store, however many, do not keep another store's waiting until all are read", async () => {
  const [store, otherStore] = [await service.newStore(), await service.newStore()];
  // Read to the end, and then refused.
  const large = Buffer.from(
    `first_name,email\n${`Anna,${'a'.repeat(60)}@example.com\n`.repeat(49_000)}Anna,a,more\n`,
  );
  let pending = 8;
  // Two at a time, as many as the service takes of one store.
  const uploads = [1, 2].map(async () => {
    for (let i = 0; i < 4; i++) {
      expectRefused(await upload(store, large), 'base');
      pending--;
    }
  });
  await eventually(
    () => Promise.resolve(pending),
    (left) => left < 8,
  );
  expect((await upload(otherStore, 'first_name,email\nBen,b@example.com\n')).status).toBe(202);
  expect(pending).toBeGreaterThan(0);
  await Promise.all(uploads);
});

it('IMPORT-37 Rows in JSON have `error_codes` beside `errors`, as responses have (ERR-29)', async () => {
  const store = await service.newStore();
  const file =
    'first_name,email,phone\nBen,ben(at)example.com,4.9E+12\nDora,,\nAnna,a@example.com,';
  const done = await importFile(store, file);
  const rows = await listRows(store, done, 'failed');
  for (const { errors, error_codes: codes } of rows) expectCodes(codes ?? {}, errors ?? {});
  expect(rows.map((row) => row.error_codes)).toEqual([
    { email: ['email_invalid'], phone: ['changed_by_spreadsheet'] },
    { base: ['contact_missing'] },
  ]);
  const [created] = await listRows(store, done, 'created');
  expect(created?.error_codes).toBeNull();

  const [anna] = await listCustomers(store);
  const update = 'first_name,email\nAnne,a@example.com\n';
  const ready = await importFile(store, update, { query: { dry_run: true } });
  await store.post(`${store.store}/customers/${anna?.id}/erase`);
  expect(await listRows(store, ready)).toMatchObject([
    {
      status: 'failed',
      errors: { base: ['This customer was erased'] },
      error_codes: { base: ['customer_erased'] },
    },
  ]);
});
