import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { ImportJson, ImportRowJson } from '#loyalty/imports/import.dto.js';
import type { ChangedCustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import type { ReversedReceiptJson } from '#loyalty/stamping/receipt-reversal.dto.js';
import { CARD_LINKS } from '../support/database/card-links.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { MailServer } from '../support/emulators/mail-server.js';
import { SmsProvider } from '../support/emulators/sms/sms-provider.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { MessageFollower } from '../support/services/message-dispatcher.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Callers choose `X-Request-Id` (HTTP-01): it never decides what belongs together. */

const ORIGIN = 'https://cards.example';
let service: LocalService;
let mails: MailServer;
let provider: SmsProvider;

beforeAll(async () => {
  [mails, provider] = await Promise.all([MailServer.start(), SmsProvider.start()]);
  service = await startService({ PUBLIC_URL: ORIGIN, ...provider.settings });
});
afterAll(async () => {
  await service.stop();
  await Promise.all([mails.goAway(), provider.stop()]);
});

/** Sends a request with an X-Request-Id, which must succeed. */
async function sendAs<T>(
  client: Client,
  requestId: string,
  [method, path, body]: [method: string, path: string, body: unknown],
): Promise<T> {
  const sent = await client.send<T>(method, path, body, { 'x-request-id': requestId });
  expect(sent.status).toBeLessThan(300);
  return sent.body;
}

describe('the undo of an import', () => {
  const stopping = new AbortController();
  let store: Client;
  let cardId: number;

  beforeAll(async () => {
    const dispatch = newImportDispatch(service).run(stopping.signal);
    service.onStop(() => {
      stopping.abort();
      return dispatch;
    });
  });

  async function importFile(file: string): Promise<ImportJson> {
    const path = `${store.store}/imports`;
    const { body } = await store.send<ImportJson>(
      'POST',
      `${path}?card_id=${cardId}`,
      new TextEncoder().encode(file),
      { 'content-type': 'text/csv' },
    );
    return waitFor(body, 'done');
  }

  const waitFor = async ({ id }: ImportJson, state: string) =>
    (
      await eventually(
        () => store.get<ImportJson>(`${store.store}/imports/${id}`),
        ({ body }) => body.state === state,
      )
    ).body;

  const listCustomers = async () =>
    (await store.get<CustomerListJson>(`${store.store}/customers?items=100`)).body.customers;

  async function undo(done: ImportJson) {
    await store.post(`${store.store}/imports/${done.id}/undo`);
    const { undone, refused } = await waitFor(done, 'undone');
    const { body: rows } = await store.get<ImportRowJson[]>(
      `${store.store}/imports/${done.id}/rows?status=refused`,
    );
    expect([undone + refused, rows.length]).toEqual([done.created + done.updated, refused]);
    return rows.map(({ row }) => row);
  }

  beforeAll(async () => {
    store = await service.newStore();
    const { body } = await store.post<{ id: number }>(`${store.store}/cards`, {
      card: { name: 'Coffee' },
    });
    cardId = body.id;
  });

  it('takes nothing for its own that others did with the ids of its rows', async () => {
    const { body: ben } = await store.post<CustomerJson>(`${store.store}/customers`, {
      customer: { first_name: 'Ben', email: 'ben@example.com' },
    });
    const done = await importFile(
      [
        'first_name,email,stamps',
        'Anna,anna@example.com,5',
        'Benjamin,ben@example.com,1',
        'Cem,cem@example.com,5',
        'Dora,dora@example.com,5',
        'Ela,ela@example.com,5\n',
      ].join('\n'),
    );
    const customers = await listCustomers();
    const pathOf = (name: string) => {
      const person = customers.find(({ first_name }) => first_name === name);
      const path = `${store.store}/customers/${person?.id}`;
      return { path, card: `${path}/customer_cards/${person?.customer_cards[0]?.id}` };
    };
    const idOf = (suffix: string) => `import-${done.id}-${suffix}`;
    for (const [name, suffix] of [
      ['Anna', 'till-7'],
      ['Cem', '4'],
      ['Dora', '5-undo'],
    ] as const) {
      const path = `${pathOf(name).card}/stamp`;
      await sendAs(store, idOf(suffix), ['POST', path, { stamps: 1 }]);
    }
    const { path, card } = pathOf('Benjamin');
    await sendAs(store, idOf('3'), ['PATCH', path, { customer: { last_name: 'Busch' } }]);
    await sendAs(store, idOf('3'), ['POST', `${card}/adjust`, { stamps: 3, reason: 'Thanks' }]);
    expect(await undo(done)).toEqual([2, 4, 5]);
    const left = await listCustomers();
    expect(
      left.map(({ first_name, last_name, stamp_count }) => [first_name, last_name, stamp_count]),
    ).toEqual(
      expect.arrayContaining([
        ['Anna', null, 6],
        ['Ben', 'Busch', 3],
        ['Cem', null, 6],
        ['Dora', null, 6],
        ['Erased', null, 0],
      ]),
    );
    expect(left.find(({ id }) => id === ben.id)?.first_name).toBe('Ben');
  });

  it('takes nothing for its own that an import with the same id did elsewhere', async () => {
    const first = await importFile('first_name,email,stamps\nFay,fay@example.com,2\n');
    const second = await importFile('first_name,email,stamps\nFaye,fay@example.com,5\n');
    // As after a move of the store to a server that counts its imports anew.
    await service.database.query('delete from import_rows where import_id = $1', [first.id]);
    await service.database.query('delete from imports where id = $1', [first.id]);
    await service.database.query('update import_rows set import_id = $1 where import_id = $2', [
      first.id,
      second.id,
    ]);
    await service.database.query('update imports set id = $1 where id = $2', [first.id, second.id]);
    expect(await undo({ ...second, id: first.id })).toEqual([]);
    const fay = (await listCustomers()).find(({ email }) => email === 'fay@example.com');
    expect([fay?.first_name, fay?.stamp_count]).toEqual(['Fay', 2]);
  });
});

describe('receipts that are reversed with the same X-Request-Id', () => {
  const reverse = (store: Client, externalRef: string) =>
    store.send<ReversedReceiptJson>(
      'POST',
      `${store.store}/receipts/reverse`,
      { external_ref: externalRef, reason: 'Wrong card' },
      { 'x-request-id': 'till-7' },
    );

  it('are told apart, on one card and on several', async () => {
    const store = await service.newStore();
    const cards = [await enrol(store, { rewards: [3] }), await enrol(store)];
    const paths = cards.map(({ path }) => path);
    const stamp = async (path: string, externalRef: string) =>
      (
        await sendAs<ChangedCustomerCardJson>(store, 'till-7', [
          'POST',
          `${path}/stamp`,
          { stamps: 5, external_ref: externalRef },
        ])
      ).event_id;
    const [one = '', other = ''] = paths;
    const eventIds = [await stamp(one, 'A'), await stamp(one, 'B'), await stamp(other, 'C')];
    const reversals = [];
    for (const ref of ['A', 'B', 'C']) reversals.push(await reverse(store, ref));
    expect(reversals.map(({ body }) => body.reversed)).toEqual(eventIds.map((id) => [id]));
    expect(reversals.map(({ body }) => body.customer_card.stamps_count)).toEqual([5, 0, 0]);
    for (const [i, ref] of ['A', 'B', 'C'].entries()) {
      const repeated = await reverse(store, ref);
      expect([repeated.status, repeated.body]).toEqual([200, reversals[i]?.body]);
      expect(repeated.headers.get('idempotent-replayed')).toBe('true');
    }
    for (const [path, count] of [
      [one, 4],
      [other, 2],
    ] as const) {
      const { body: entries } = await store.get<HistoryEntryJson[]>(`${path}/events`);
      expect(entries.filter(({ type }) => type.startsWith('stamp.'))).toHaveLength(count);
      expect(await store.readBalance(path)).toBe(0);
    }
  });
});

describe('signups with the same X-Request-Id', () => {
  let follower: MessageFollower;

  beforeAll(() => {
    follower = new MessageFollower(service, {
      SMTP_URL: mails.url,
      MAIL_FROM: 'inkpad@shop.example',
      ...provider.settings,
    });
  });
  afterAll(() => follower.stop());

  it('hold each their own messages, and none that the store asks for', async () => {
    const store = await service.newStore({ locale: 'en-DE' });
    const [byMail, byPhone] = [
      await newPoster(store, { contact_collection_mode: 'email_only' }),
      await newPoster(store, { contact_collection_mode: 'phone_only' }),
    ];
    const ada = { first_name: 'Ada', email: 'ada@mail.example', phone: '+4915112340901' };
    mails.refuse(ada.email);
    await store.post(`${store.store}/customers`, { customer: ada });
    const signUp = async (poster: typeof byMail, fields: Record<string, string>) => {
      const form = await SignupForm.open(service.baseUrl, ORIGIN, poster);
      expect((await form.send(fields, { 'x-request-id': 'page-1' })).status).toBe(303);
    };
    // No number was entered: nothing is sent to the number on file (JOIN-36).
    await signUp(byMail, { first_name: 'Ada', email: ada.email });
    await signUp(byPhone, { first_name: 'Bob', phone: '+4915112340902' });
    await sendAs(store, 'page-1', [
      'POST',
      `${store.store}/customers`,
      {
        customer: { first_name: 'Cem', phone: '+4915112340903' },
        card_id: byPhone.card_id,
        send_card_links: true,
      },
    ]);
    await follower.waitUntilSettled();
    const { rows } = await service.database.query<{ message: string }>(
      `select channel || ' ' || state as message from ${CARD_LINKS} where account_id = $1 order by 1`,
      [store.accountId],
    );
    expect(rows.map(({ message }) => message)).toEqual(['sms held', 'sms sent', 'sms sent']);
  });
});
