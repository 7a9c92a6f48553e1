import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ImportJson } from '#loyalty/imports/import.dto.js';
import { Browser, type BrowserResponse } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests what the pages of imports do, beside what is seen in a browser. */

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let page: string;
const stopping = new AbortController();
let dispatch: Promise<void>;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  dispatch = newImportDispatch(service).run(stopping.signal);
  owner = new Browser(service);
  await owner.signIn(store.email, 'correct horse');
  page = `/app/stores/${store.accountId}/transfers`;
});
afterAll(async () => {
  stopping.abort();
  await dispatch;
  await service.stop();
});

async function upload(
  content: string | Uint8Array<ArrayBuffer>,
  {
    formKey = String(Math.random()),
    encoding = '',
    browser = owner,
    at = page,
  }: { formKey?: string; encoding?: string; browser?: Browser; at?: string } = {},
): Promise<BrowserResponse> {
  await browser.get(at);
  const form = new FormData();
  form.set('_csrf', browser.csrf);
  form.set('form_key', formKey);
  form.set('encoding', encoding);
  form.set('file', new File([content], 'customers.csv', { type: 'text/csv' }));
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const response = await fetch(`${service.baseUrl}${at}/imports`, {
    method: 'POST',
    redirect: 'manual',
    headers: { accept: 'text/html', cookie, origin: browser.origin },
    body: form,
  });
  const location = response.headers.get('location');
  return {
    status: response.status,
    headers: response.headers,
    text: await response.text(),
    location,
  };
}

const findImport = ({ location }: BrowserResponse) =>
  Number(/imports\/(\d+)\?/.exec(location ?? '')?.[1]);

async function waitFor(id: number, state: ImportJson['state']): Promise<ImportJson> {
  return eventually(
    async () => (await store.get<ImportJson>(`${store.store}/imports/${id}`)).body,
    (current) => current.state === state,
  );
}

describe('the pages of imports', () => {
  it('upload a file once, however often its form is sent', async () => {
    const [one, two] = [
      await upload('email,first_name\na@example.com,A', { formKey: 'key' }),
      await upload('email,first_name\na@example.com,A', { formKey: 'key' }),
    ];
    expect([one.status, two.location]).toEqual([303, one.location]);
    await waitFor(findImport(one), 'ready');
    const otherResponse = await upload('email,first_name\nz@example.com,Z', { formKey: 'key' });
    expect(otherResponse.status).toBe(303);
    expect(findImport(otherResponse)).not.toBe(findImport(one));
    await waitFor(findImport(otherResponse), 'ready');
  });

  it('check rows anew when columns are chosen, without the file', async () => {
    const id = findImport(await upload('Kontakt,Name 1\nb@example.com,Bea\nc@example.com,'));
    expect(await waitFor(id, 'ready')).toMatchObject({ failed: 2, created: 0 });
    const at = `${page}/imports/${id}`;
    await owner.get(at);
    const none = await owner.post(`${at}/columns`, { column_1: 'first_name' });
    expect([none.status, none.text]).toEqual([
      422,
      expect.stringContaining('Tell us which column'),
    ]);
    const same = await owner.post(`${at}/columns`, { column_0: 'email', column_1: 'email' });
    expect([same.status, same.text]).toEqual([422, expect.stringContaining('hold the same')]);
    const stamps = { column_0: 'email', column_1: 'stamps' };
    expect((await owner.post(`${at}/columns`, stamps)).text).toContain('Choose a card');
    const right = { column_0: 'email', column_1: 'first_name' };
    expect((await owner.post(`${at}/columns`, right)).status).toBe(303);
    const checked = await eventually(
      async () => (await store.get<ImportJson>(`${store.store}/imports/${id}`)).body,
      ({ state, created }) => state === 'ready' && created === 1,
    );
    expect(checked).toMatchObject({ failed: 1, rows_total: 2, rows_done: 2 });
    await owner.get(at);
    expect((await owner.post(`${at}/start`)).status).toBe(303);
    expect(await waitFor(id, 'done')).toMatchObject({ created: 1, failed: 1 });
    await owner.get(at);
    const late = await owner.post(`${at}/columns`, right);
    expect([late.status, late.text]).toEqual([422, expect.stringContaining('in the meantime')]);
  });

  it('import stamps on the only card, and say where a column needs one or is ignored', async () => {
    const other = await service.newStore();
    const browser = new Browser(service);
    await browser.signIn(other.email, 'correct horse');
    const at = `/app/stores/${other.accountId}/transfers`;
    const read = async (id: number, isDone: (current: ImportJson) => boolean) =>
      eventually(
        async () => (await other.get<ImportJson>(`${other.store}/imports/${id}`)).body,
        (current) => current.state === 'ready' && isDone(current),
      );
    const addCard = async (name: string) =>
      (await other.post<{ id: number }>(`${other.store}/cards`, { card: { name } })).body.id;
    const file = 'E-mail,Name,Stamps,Card code\na@example.com,A,3,\nb@example.com,B,2,';
    const uploadHere = async (content: string) =>
      findImport(await upload(content, { browser, at }));

    const coffee = await addCard('Coffee');
    const summer = await addCard('Summer');
    const expiry = { card: { expires_at: '2020-01-01T00:00:00Z' } };
    expect((await other.send('PATCH', `${other.store}/cards/${summer}`, expiry)).status).toBe(200);
    const withCard = await uploadHere(file);
    const fields = (current: ImportJson) => current.columns.map(({ field }) => field);
    const first = await read(withCard, () => true);
    expect(fields(first)).toEqual(['email', 'first_name', 'stamps', 'code']);
    expect(first.card_id).toBe(coffee);
    const pageOfFirst = (await browser.get(`${at}/imports/${withCard}`)).text;
    expect(pageOfFirst).toContain('2 rows will be imported. Everyone gets the card “Coffee”.');
    expect(pageOfFirst).not.toMatch(/The column|Summer/);
    expect(await read(await uploadHere('email,name\nc@example.com,C'), () => true)).toMatchObject({
      card_id: null,
    });

    const tea = await addCard('Tea');
    const without = await uploadHere(file);
    expect(fields(await read(without, () => true))).toEqual(['email', 'first_name', null, null]);
    const page2 = `${at}/imports/${without}`;
    const { text } = await browser.get(page2);
    expect(text).toContain('The column “Stamps” will not be imported: choose a card.');
    expect(text).toContain('The column “Card code” will not be imported: choose a card.');
    const form = { column_0: 'email', column_1: 'first_name', column_2: '', column_3: '' };
    await browser.post(`${page2}/columns`, { ...form, card_id: String(tea) });
    const chosen = await read(without, (current) => current.card_id === tea);
    expect(fields(chosen)).toEqual(['email', 'first_name', 'stamps', 'code']);
    await browser.get(page2);
    await browser.post(`${page2}/columns`, { ...form, column_3: 'code', card_id: String(coffee) });
    await read(without, (current) => current.card_id === coffee);
    const ignored = (await browser.get(page2)).text;
    expect(ignored).toContain('The column “Stamps” will not be imported.');
    expect(ignored).not.toContain('Card code” will');
  });

  it('say what a customer number is enough for', async () => {
    const id = findImport(await upload('first_name,customer number\nZoe,1700'));
    await waitFor(id, 'ready');
    const { text } = await owner.get(`${page}/imports/${id}`);
    expect(text).toContain('A customer number is enough only for customers you already have.');
  });

  it('say of a row that its customer was erased', async () => {
    const customer = { first_name: 'Eva', email: 'eva@example.com' };
    const { body } = await store.post<{ id: number }>(`${store.store}/customers`, { customer });
    const id = findImport(await upload('email,first_name\neva@example.com,Evi'));
    await waitFor(id, 'ready');
    await store.post(`${store.store}/customers/${body.id}/erase`);
    const { text } = await owner.get(`${page}/imports/${id}`);
    expect(text).toContain('This person was erased.');
    const csv = await owner.get(`${page}/imports/${id}/rows.csv`);
    expect(csv.text).toContain(',failed,This person was erased.');
    const german = { 'accept-language': 'de' };
    const inGerman = await owner.get(`${page}/imports/${id}/rows.csv`, german);
    expect(inGerman.text).toContain(',failed,Diese Person wurde gelöscht.');
  });

  it('read a file in the encoding that was chosen', async () => {
    // Łukasz
    const polish = Uint8Array.from('email,first_name\nl@example.com,\xa3ukasz\n', (character) =>
      character.charCodeAt(0),
    );
    for (const [encoding, name] of [
      ['', '£ukasz'],
      ['windows-1250', 'Łukasz'],
      ['none', '£ukasz'],
    ] as const) {
      const id = findImport(await upload(polish, { encoding }));
      await waitFor(id, 'ready');
      expect((await owner.get(`${page}/imports/${id}`)).text).toContain(`For example ${name}`);
      await owner.post(`${page}/imports/${id}/discard`);
    }
    const declared = await upload(polish, { encoding: 'utf-8' });
    expect([declared.status, declared.text]).toEqual([
      422,
      expect.stringContaining('Row 2 has a character'),
    ]);
    expect(declared.text).toMatch(/<option value="utf-8" selected>/);
  });

  it('say in words for owners that too many imports wait', async () => {
    const otherStore = await service.newStore();
    const browser = new Browser(service);
    await browser.signIn(otherStore.email, 'correct horse');
    const at = `/app/stores/${otherStore.accountId}/transfers`;
    const file = 'email,first_name\na@example.com,A';
    for (let i = 0; i < 10; i++) {
      expect((await upload(file, { browser, at })).status).toBe(303);
    }
    const refused = await upload(file, { browser, at });
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining('Too many imports are waiting'),
    ]);
    expect(refused.text).not.toContain('POST');
  });

  it('discard an import with its rows', async () => {
    const id = findImport(await upload('email,first_name\nd@example.com,Dora'));
    await waitFor(id, 'ready');
    await owner.get(`${page}/imports/${id}/discard`);
    expect((await owner.post(`${page}/imports/${id}/discard`)).location).toBe(
      `${page}?done=discarded`,
    );
    expect(await waitFor(id, 'failed')).toMatchObject({
      error: 'It was discarded before it was started',
    });
    const { rows } = await service.database.query('select from import_rows where import_id = $1', [
      id,
    ]);
    expect(rows).toEqual([]);
    const german = await owner.get(`${page}/imports/${id}`, { 'accept-language': 'de' });
    expect(german.text).toContain('<p class="error">Der Import wurde verworfen.</p>');
    expect((await owner.post(`${page}/imports/${id}/start`)).status).toBe(422);
  });

  it('refuse what is no table, and imports of other stores', async () => {
    const broken = await upload('email,email\na@example.com,b@example.com');
    expect(broken.status).toBe(422);
    expect(broken.text).toContain('Two columns are called email.');
    for (const [start, message] of [
      ['504b0304', 'This is an Excel workbook'],
      ['d0cf11e0', 'This is an Excel workbook'],
      ['25504446', 'This is not a text file'],
      ['0a656d61696c0a', 'The first row of the file is blank'],
      ['3c68746d6c3e', 'This is a web page'],
    ] as const) {
      const { status, text } = await upload(new Uint8Array(Buffer.from(start, 'hex')));
      expect([status, text]).toEqual([422, expect.stringContaining(message)]);
      expect(text).not.toContain('cannot be read as a table');
    }
    const otherStore = await service.newStore();
    const stranger = new Browser(service);
    await stranger.signIn(otherStore.email, 'correct horse');
    const id = findImport(await upload('email,first_name\ne@example.com,E'));
    for (const path of [`imports/${id}`, `imports/${id}/rows.csv`, `imports/${id}/undo`]) {
      const { status } = await stranger.get(
        `/app/stores/${otherStore.accountId}/transfers/${path}`,
      );
      expect([path, status]).toEqual([path, 404]);
    }
  });

  it('export the history of whole days of the store', async () => {
    const { status, text, headers } = await owner.get(
      `${page}/export?kind=history&format=ndjson&from=2020-01-01&to=2020-01-31`,
    );
    expect([status, text, headers.get('cache-control')]).toEqual([200, '', 'no-store']);
    expect((await owner.get(`${page}/export?kind=history&from=2020-02-30`)).status).toBe(422);
    expect((await owner.get(`${page}/export?kind=secrets`)).status).toBe(404);
  });
});
