import { beforeAll, describe, expect, it } from '@jest/globals';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CreatedCustomerJson, CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type Failure,
} from '../support/http/contract.js';
import type { WebhookSubscriptionJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { exchange } from '../support/http/raw-request.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let cards: string;
let rewards: string;
let customers: string;

beforeAll(async () => {
  cards = `${store.store}/cards`;
  rewards = `${store.store}/rewards`;
  customers = `${store.store}/customers`;
});

let people = 0;
const someone = () => ({ first_name: 'Anna', email: `someone${people++}@example.com` });

/** A body's wrapper, how to send it, and a complete body without its wrapper. */
async function writes(): Promise<
  { wrapper: string; method: 'POST' | 'PATCH'; path: string; fields: object; done: number }[]
> {
  const { card } = await enrol(store);
  return [
    {
      wrapper: 'reward',
      method: 'POST',
      path: rewards,
      fields: { card_id: card.id, name: 'Cake', stamps_required: 3 },
      done: 201,
    },
    { wrapper: 'customer', method: 'POST', path: customers, fields: someone(), done: 201 },
    {
      wrapper: 'location',
      method: 'POST',
      path: `${store.store}/locations`,
      fields: { name: 'Main street', address: 'Main Street 1, Springfield' },
      done: 201,
    },
    {
      wrapper: 'poster',
      method: 'POST',
      path: `${store.store}/posters`,
      fields: { card_id: card.id },
      done: 201,
    },
    {
      wrapper: 'account',
      method: 'PATCH',
      path: store.store,
      fields: { store_name: 'Corner' },
      done: 200,
    },
  ];
}

async function makeCard(card: object = {}): Promise<CardJson> {
  const { status, body } = await store.post<CardJson>(cards, { card: { name: 'Coffee', ...card } });
  expect(status).toBe(201);
  return body;
}

describe('bodies', () => {
  it('CONV-01 Bodies that write a card, customer, reward, location, poster or account are wrapped in an object of that name', async () => {
    expect((await store.post(cards, { card: { name: 'Coffee' } })).status).toBe(201);
    for (const { wrapper, method, path, fields, done } of await writes()) {
      const { status } = await store.send(method, path, { [wrapper]: fields });
      expect([wrapper, status]).toEqual([wrapper, done]);
    }
  });

  it('CONV-02 A card body without its wrapper is 422 `card`', async () => {
    expectRefused(await store.post(cards, { name: 'Coffee' }), 'card');
    const { id } = await makeCard();
    expectRefused(await store.patch(`${cards}/${id}`, { name: 'Tea' }), 'card');
  });

  it("CONV-03 Every body but a card's is also accepted without its wrapper if the object has at least one of its fields", async () => {
    for (const { wrapper, method, path, fields, done } of await writes()) {
      const { status } = await store.send(method, path, fields);
      expect([wrapper, status]).toEqual([wrapper, done]);
    }
  });

  it("CONV-04 A body with neither its wrapper nor any of its fields is 422 on the wrapper's name", async () => {
    for (const { wrapper, method, path } of await writes()) {
      expectRefused(await store.send(method, path, { unknown: 1 }), wrapper);
      expectRefused(await store.send(method, path, {}), wrapper);
    }
  });

  it('CONV-05 A wrapper that is not an object is 422 on its name', async () => {
    for (const value of ['x', 1, true, [], null]) {
      expectRefused(await store.post(cards, { card: value }), 'card');
    }
    for (const { wrapper, method, path } of await writes()) {
      expectRefused(await store.send(method, path, { [wrapper]: [1] }), wrapper);
    }
  });

  it('CONV-06 Bodies of stamp, redeem and webhook subscriptions are not wrapped', async () => {
    const { path, rewards: cardRewards } = await enrol(store, { rewards: [1] });
    expect((await store.stamp(path)).status).toBe(200);
    expect((await store.post(`${path}/redeem`, { reward_id: cardRewards[0]?.id })).status).toBe(
      200,
    );
    const hook = { events: ['*'], target_url: 'https://example.com/hooks' };
    expect((await store.post(`${store.store}/webhook_subscriptions`, hook)).status).toBe(201);
  });

  it('CONV-07 Unknown keys are ignored, inside and outside the wrapper', async () => {
    const body = { card: { name: 'Coffee', flavour: 'dark' }, client: { version: 3 } };
    expect((await store.post(cards, body)).status).toBe(201);
    const { path } = await enrol(store);
    expect((await store.stamp(path, { sender: 'till' })).status).toBe(200);
  });

  it('CONV-08 The keys `__proto__` and `constructor` are ignored like unknown ones', async () => {
    const poison = '"__proto__":{"name":"x"},"constructor":{"prototype":{"name":"x"}}';
    const createdCard = await store.post<CardJson>(
      cards,
      `{"card":{"name":"Coffee",${poison}},${poison}}`,
    );
    expect([createdCard.status, createdCard.body.name]).toEqual([201, 'Coffee']);
    expectRefused(await store.post(cards, `{"card":{${poison}}}`), 'name');
  });

  it('CONV-54 Where the wrapper is present, only the fields inside it count, and beside it only what the operation documents there, such as `card_id` of a new customer', async () => {
    const unknownIn = ({ headers }: { headers: Headers }) => headers.get('x-unknown-parameters');
    const beside = {
      first_name: 'Outer',
      last_name: 'Outer',
      email: 'outer@example.com',
      phone: '+4915112345678',
      birthday: '1990-01-31',
      metadata: { outer: true },
      external_references: [{ source: 'till', external_id: 'outer' }],
      marketing_consent: true,
      sms_consent: true,
    };
    const names = Object.keys(beside).join(', ');
    const createdCustomer = await store.post<CreatedCustomerJson>(customers, {
      ...beside,
      customer: { first_name: 'Inner', email: 'inner@example.com' },
    });
    expect([createdCustomer.status, unknownIn(createdCustomer)]).toEqual([201, names]);
    const { customer_card: _card, ...customer } = createdCustomer.body;
    const { first_name, last_name, email, phone, birthday, marketing_consent, sms_consent } =
      customer;
    expect([first_name, last_name, email, phone, birthday]).toEqual([
      'Inner',
      null,
      'inner@example.com',
      null,
      null,
    ]);
    expect([marketing_consent, sms_consent, customer.metadata]).toEqual([false, false, {}]);
    expect(customer.external_references).toEqual([]);
    const at = `${customers}/${customer.id}`;
    const changed = await store.patch<CustomerJson>(at, {
      customer: { last_name: 'Berg' },
      ...beside,
    });
    expect([changed.status, unknownIn(changed)]).toEqual([200, names]);
    const { updated_at: _, ...rest } = changed.body;
    expect(rest).toMatchObject({ first_name: 'Inner', last_name: 'Berg', email });
    expect(rest.marketing_consent).toBe(false);

    const unreachable = await store.post(customers, {
      customer: { first_name: 'Inner' },
      ...someone(),
    });
    expectRefused(unreachable, 'base');

    // Fields that belong outside the wrapper have no effect inside.
    const { id } = await makeCard();
    const inside = { ...someone(), card_id: id, send_card_links: true };
    const alone = await store.post<CreatedCustomerJson>(customers, { customer: inside });
    expect([alone.status, alone.body.customer_cards, unknownIn(alone)]).toEqual([
      201,
      [],
      'customer.card_id, customer.send_card_links',
    ]);
    const both = await store.post<CreatedCustomerJson>(customers, {
      customer: { ...someone(), card_id: 999_999_999 },
      card_id: id,
    });
    expect([both.status, both.body.customer_card?.card_id]).toEqual([201, id]);
    const bare = await store.post<CreatedCustomerJson>(customers, { ...someone(), card_id: id });
    expect([bare.status, bare.body.customer_card?.card_id, unknownIn(bare)]).toEqual([
      201,
      id,
      null,
    ]);

    // Of every other body, each field stands in the wrapper and nowhere else.
    const card = await store.post<CardJson>(cards, { card: { name: 'A' }, stamps_required: 3 });
    expect([card.status, card.body.stamps_required, unknownIn(card)]).toEqual([
      201,
      10,
      'stamps_required',
    ]);
    const again = await store.patch<CardJson>(`${cards}/${card.body.id}`, {
      name: 'Outer',
      card: { header_text: 'Inner' },
      card_id: 1,
    });
    expect([again.status, again.body.name, unknownIn(again)]).toEqual([200, 'A', 'name, card_id']);
    for (const { wrapper, method, path, fields, done } of await writes()) {
      const entries = Object.entries(fields);
      const twice = await store.send(method, path, { [wrapper]: fields, ...fields });
      expect([wrapper, twice.status, unknownIn(twice)]).toEqual([
        wrapper,
        done,
        entries.map(([name]) => name).join(', '),
      ]);
      const elsewhere = await store.send(method, path, { [wrapper]: {}, ...fields });
      const empty = method === 'POST' ? 422 : 200;
      expect([wrapper, elsewhere.status]).toEqual([wrapper, empty]);
      const nested = await store.send(method, path, { [wrapper]: { [wrapper]: fields } });
      expect([wrapper, unknownIn(nested)]).toEqual([wrapper, `${wrapper}.${wrapper}`]);
      for (const value of [null, [], [fields], 'x', JSON.stringify(fields), 1, true]) {
        expectRefused(await store.send(method, path, { [wrapper]: value, ...fields }), wrapper);
      }
      const strict = { prefer: 'handling=strict' };
      const refused = await store.send(method, path, { [wrapper]: fields, ...fields }, strict);
      expectRefused(
        refused,
        entries.map(([name]) => name),
      );
    }
    const { rewards: promised } = await enrol(store, { rewards: [3] });
    const reward = `${rewards}/${promised[0]?.id}`;
    const updatedReward = await store.patch<RewardJson>(reward, {
      reward: { name: 'B' },
      active: false,
    });
    expect([updatedReward.status, updatedReward.body.active, unknownIn(updatedReward)]).toEqual([
      200,
      true,
      'active',
    ]);
  });

  it('CONV-09 A body that is JSON but not an object is 422 `base`', async () => {
    for (const body of ['[]', '[{}]', '"text"', '1', 'null', 'true']) {
      expectRefused(await store.post(cards, body), 'base');
      expectRefused(await store.post(customers, body), 'base');
    }
  });

  it('CONV-10 Actions that need no body can be called without body and content type', async () => {
    const { id } = await makeCard();
    expect((await store.post(`${cards}/${id}/archive`)).status).toBe(200);
  });

  it('CONV-11 An empty body counts as no body, whatever its `Content-Type` says: it is never 415', async () => {
    const { id } = await makeCard();
    const json = { 'content-type': 'application/json' };
    expect((await store.send('POST', `${cards}/${id}/archive`, '', json)).status).toBe(200);
    expectRefused(await store.send('POST', cards, '', json), 'card');

    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'image/png',
      'application/octet-stream',
      'application/json; charset=utf-8',
      'x',
      ';',
      '',
      undefined,
    ];
    const framings = ['Content-Length: 0', 'Transfer-Encoding: chunked', undefined];
    const statusOf = async (method: string, path: string, fields: (string | undefined)[]) => {
      const framed = fields.includes('Transfer-Encoding: chunked') ? '0\r\n\r\n' : '';
      const head = [`${method} ${path} HTTP/1.1`, 'Host: x', 'Connection: close', ...fields]
        .concat(`Authorization: Bearer ${store.token ?? ''}`)
        .filter((field) => field !== undefined);
      const response = await exchange(store.baseUrl, `${head.join('\r\n')}\r\n\r\n${framed}`);
      return response.slice(9, 12);
    };
    const typed = (type: string | undefined) =>
      type === undefined ? undefined : `Content-Type: ${type}`;
    for (const type of types) {
      for (const framing of framings) {
        for (const [method, path, status] of [
          ['POST', `${cards}/${id}/archive`, '200'],
          ['POST', cards, '422'],
          ['PATCH', `${cards}/${id}`, '422'],
          ['PUT', `${cards}/${id}/strip_image`, '422'],
          ['POST', `${store.store}/imports`, '422'],
          ['DELETE', `${rewards}/999999999`, '404'],
          ['GET', cards, '200'],
          ['POST', '/nowhere', '404'],
          ['POST', '/join/nobody', '404'],
          ['POST', '/app/sign-in', '403'],
        ] as const) {
          const request = [method, path, type, framing];
          const got = await statusOf(method, path, [typed(type), framing]);
          expect([...request, got]).toEqual([...request, status]);
        }
      }
    }
    // Every other operation, with one type each.
    const { body: document } = await service.anonymous.get<{ paths: Record<string, object> }>(
      '/openapi.json',
    );
    let sentCount = 0;
    for (const [template, methods] of Object.entries(document.paths)) {
      const path = template
        .replace('{account_id}', String(store.accountId))
        .replaceAll(/\{\w+\}/g, '999999999');
      for (const method of Object.keys(methods)) {
        const fields = [typed(types[sentCount++ % types.length]), framings[sentCount % 2]];
        const got = await statusOf(method.toUpperCase(), path, fields);
        expect([method, path, ...fields, got]).not.toEqual([method, path, ...fields, '415']);
      }
    }
    // An empty body is not compressed either.
    const gzip = { ...json, 'content-encoding': 'gzip' };
    expect((await store.send('POST', `${cards}/${id}/archive`, '', gzip)).status).toBe(200);
    // Chunks that bring something later are a body.
    const late = `POST ${cards} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${store.token ?? ''}\r\n`;
    const card = JSON.stringify({ card: { name: 'In pieces' } });
    const chunks = async function* (type: string) {
      yield `${late}Content-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;
      for (const part of [card.slice(0, 5), card.slice(5)]) {
        await new Promise((resolve) => setImmediate(resolve));
        yield `${part.length.toString(16)}\r\n${part}\r\n`;
      }
      yield '0\r\n\r\n';
    };
    const inPieces = await exchange(store.baseUrl, chunks('application/json\r\nConnection: close'));
    expect(inPieces).toMatch(/^HTTP\/1.1 201 [^]*"name":"In pieces"/);
    // A server that closes takes the response away from a client that still sends (RFC 9112, section 9.6).
    const isRefused = (received: string) => received.startsWith('HTTP/1.1 415 ');
    const stays = chunks('text/plain\r\nConnection: keep-alive');
    expect(await exchange(store.baseUrl, stays, isRefused)).toMatch(/^HTTP\/1.1 415 /);
  });

  it('CONV-55 A compressed body is 415 `unsupported_media_type`, with advice in `resolution`, whether `Content-Encoding` or `Transfer-Encoding` says so', async () => {
    const card = JSON.stringify({ card: { name: 'Packed' } });
    const packed = {
      gzip: gzipSync(card),
      br: brotliCompressSync(card),
      deflate: deflateSync(card),
    };
    for (const [coding, body] of [
      ['gzip', packed.gzip],
      ['GZIP', packed.gzip],
      ['x-gzip', packed.gzip],
      ['identity, gzip', packed.gzip],
      ['br', packed.br],
      ['deflate', packed.deflate],
      ['zstd', packed.gzip],
      ['gzip', Buffer.from(card)],
      ['gzip', gzipSync('')],
    ] as const) {
      for (const type of ['application/json', 'text/plain', 'image/png']) {
        const headers = { 'content-type': type, 'content-encoding': coding };
        const response = await store.send<Failure>('POST', cards, new Uint8Array(body), headers);
        expectFailure(response, 415, 'unsupported_media_type');
        expect(response.body.resolution).toContain('Content-Encoding');
        expect(response.headers.get('accept-encoding')).toBe('identity');
      }
    }
    for (const coding of ['identity', '', 'Identity']) {
      const headers = { 'content-encoding': coding };
      expect((await store.send('POST', cards, card, headers)).status).toBe(201);
    }
    for (const coding of ['gzip, chunked', 'deflate,chunked', 'GZIP , Chunked']) {
      const head = `POST ${cards} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n`;
      const authorization = `Authorization: Bearer ${store.token ?? ''}\r\n`;
      const chunk = `${card.length.toString(16)}\r\n${card}\r\n0\r\n\r\n`;
      const response = await exchange(
        store.baseUrl,
        `${head}${authorization}Transfer-Encoding: ${coding}\r\n\r\n${chunk}`,
      );
      expect([coding, response.slice(0, 12)]).toEqual([coding, 'HTTP/1.1 415']);
      expect(response).toContain('without Content-Encoding');
    }
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const picture = `${cards}/999999999/strip_image`;
    const pictureResponse = await store.send('PUT', picture, new Uint8Array(packed.gzip), headers);
    expectFailure(pictureResponse, 415, 'unsupported_media_type');
    const stranger = await service.anonymous.send(
      'POST',
      cards,
      new Uint8Array(packed.gzip),
      headers,
    );
    expectFailure(stranger, 401, 'unauthorized');
  });

  it('CONV-12 `Content-Type` may carry a charset', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset=UTF-8']) {
      const body = JSON.stringify({ card: { name: 'Café' } });
      const response = await store.send<CardJson>('POST', cards, body, { 'content-type': type });
      expect([response.status, response.body.name]).toEqual([201, 'Café']);
    }
  });
});

describe('types', () => {
  it('CONV-13 An integer may be sent as a string of digits', async () => {
    const card = await makeCard({ stamps_required: '12', initial_stamps: '2' });
    expect([card.stamps_required, card.initial_stamps]).toEqual([12, 2]);
  });

  it('CONV-14 A fraction, text, a list, an object or a boolean in place of an integer is 422 on the field', async () => {
    for (const stamps_required of [2.5, '2.5', 'ten', '1e1', '0x5', '5 stamps', [5], {}, true]) {
      const response = await store.post(cards, { card: { name: 'Coffee', stamps_required } });
      expectRefused(response, 'stamps_required');
    }
  });

  it('CONV-15 A boolean may be sent as true, false, 1, 0 or as a string of one of these', async () => {
    for (const [input, meant] of [
      [true, true],
      [1, true],
      ['1', true],
      ['true', true],
      [false, false],
      [0, false],
      ['0', false],
      ['false', false],
    ]) {
      expect([input, (await makeCard({ show_member_field: input })).show_member_field]).toEqual([
        input,
        meant,
      ]);
    }
  });

  it('CONV-16 Anything but a boolean in place of one is 422 on the field', async () => {
    for (const show_member_field of ['yes', 'on', 2, -1, [], {}, 'x']) {
      const response = await store.post(cards, { card: { name: 'Coffee', show_member_field } });
      expectRefused(response, 'show_member_field');
    }
  });

  it('CONV-17 Booleans are returned as true and false', async () => {
    const card = await makeCard({ show_member_field: 0, show_stamps_to_reward_field: '1' });
    expect([card.show_member_field, card.show_stamps_to_reward_field]).toEqual([false, true]);
    const { customer } = await enrol(store);
    expect([customer.marketing_consent, customer.sms_consent]).toEqual([false, false]);
  });

  it('CONV-18 Ids and counts are returned as integers', async () => {
    const {
      card,
      customer,
      customerCard,
      rewards: cardRewards,
    } = await enrol(store, { rewards: [2] });
    const { body: cardJson } = await store.get<CardJson>(`${cards}/${card.id}`);
    for (const number of [
      cardJson.id,
      cardJson.rewards_count,
      cardJson.customer_cards_count,
      cardJson.stamps_required,
      customer.id,
      customer.account_id,
      customer.stamp_count,
      customerCard.id,
      customerCard.card_id,
      customerCard.stamps_count,
      customerCard.progress_percentage,
      cardRewards[0]?.id,
      cardRewards[0]?.position,
    ]) {
      expect(Number.isInteger(number)).toBe(true);
    }
  });

  it('CONV-19 Names and titles are trimmed', async () => {
    expect((await makeCard({ name: ' \t Coffee card \n' })).name).toBe('Coffee card');
    const createdCustomer = await store.post<CreatedCustomerJson>(customers, {
      customer: { ...someone(), first_name: ' Anna ', last_name: ' Schmidt ' },
    });
    expect([createdCustomer.body.first_name, createdCustomer.body.last_name]).toEqual([
      'Anna',
      'Schmidt',
    ]);
  });

  it('CONV-20 A blank name is 422 on the field', async () => {
    for (const blank of ['', ' ', '\t\n', '\u00a0']) {
      expectRefused(await store.post(cards, { card: { name: blank } }), 'name');
      const customer = { ...someone(), first_name: blank };
      expectRefused(await store.post(customers, { customer }), 'first_name');
    }
  });

  it('CONV-21 A name may have up to 255 characters; a longer one is 422 on the field', async () => {
    expect((await makeCard({ name: 'x'.repeat(255) })).name).toHaveLength(255);
    expectRefused(await store.post(cards, { card: { name: 'x'.repeat(256) } }), 'name');
  });

  it('CONV-22 Characters are counted as code points: 255 emoji fit', async () => {
    expect((await makeCard({ name: '☕'.repeat(255) })).name).toBe('☕'.repeat(255));
    expect((await makeCard({ name: '🎂'.repeat(255) })).name).toBe('🎂'.repeat(255));
    expectRefused(await store.post(cards, { card: { name: '🎂'.repeat(256) } }), 'name');
  });

  it('CONV-23 A blank string for an optional text means null', async () => {
    for (const blank of ['', '  ']) {
      expect((await makeCard({ header_text: blank })).header_text).toBeNull();
    }
    const { id } = await makeCard({ header_text: 'Hi' });
    const { body } = await store.patch<CardJson>(`${cards}/${id}`, { card: { header_text: ' ' } });
    expect(body.header_text).toBeNull();
  });

  it('CONV-24 A NUL character in a text is 422 on the field', async () => {
    expectRefused(await store.post(cards, { card: { name: 'a\0b' } }), 'name');
    const header = { name: 'Coffee', header_text: 'a\0b' };
    expectRefused(await store.post(cards, { card: header }), 'header_text');
    const customer = { ...someone(), last_name: 'a\0b', metadata: { a: '\0' } };
    expectRefused(await store.post(customers, { customer }), ['last_name', 'metadata']);
  });

  it('CONV-25 A value that is not a string in place of a text is 422 on the field', async () => {
    for (const text of [7, true, [], {}, ['x'], { $ne: '' }]) {
      expectRefused(await store.post(cards, { card: { name: text } }), 'name');
      const header = { name: 'Coffee', header_text: text };
      expectRefused(await store.post(cards, { card: header }), 'header_text');
    }
  });

  it('CONV-26 null in a PATCH clears a nullable field', async () => {
    const { id } = await makeCard({ header_text: 'Hi', strip_color: '#123' });
    const { status, body } = await store.patch<CardJson>(`${cards}/${id}`, {
      card: { header_text: null, strip_color: null },
    });
    expect([status, body.header_text, body.strip_color]).toEqual([200, null, null]);
  });

  it('CONV-27 null in a PATCH of a field that is not nullable is 422 on the field', async () => {
    const { id } = await makeCard();
    for (const field of [
      'name',
      'card_color',
      'stamp_icon',
      'stamps_required',
      'initial_stamps',
      'show_member_field',
      'auxiliary_fields',
      'strip_type',
      'strip_opacity',
    ]) {
      expectRefused(await store.patch(`${cards}/${id}`, { card: { [field]: null } }), field);
    }
  });

  it('CONV-28 null in a POST means the default', async () => {
    const plain = await makeCard();
    const nulls = Object.fromEntries(
      Object.keys(plain)
        .filter((name) => name !== 'name')
        .map((name) => [name, null]),
    );
    const { id, created_at, updated_at } = plain;
    expect({ ...(await makeCard(nulls)), id, created_at, updated_at }).toEqual(plain);
  });

  it('CONV-29 Times are returned in ISO 8601, in UTC, with milliseconds and `Z`', async () => {
    const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
    const {
      card,
      customer,
      customerCard,
      rewards: cardRewards,
    } = await enrol(store, {
      rewards: [1],
      card: { expires_at: '2090-01-01T12:00+02:00' },
    });
    const { body: archived } = await store.post<CardJson>(`${cards}/${card.id}/archive`);
    const { body: shop } = await store.get<{ created_at: string; updated_at: string }>(store.store);
    for (const time of [
      card.created_at,
      card.updated_at,
      card.expires_at,
      archived.archived_at,
      customer.created_at,
      customer.updated_at,
      customerCard.issued_at,
      customerCard.created_at,
      customerCard.updated_at,
      cardRewards[0]?.created_at,
      cardRewards[0]?.updated_at,
      shop.created_at,
      shop.updated_at,
    ]) {
      expect(time).toMatch(utc);
    }
  });
});

const RESOURCES = [
  'cards',
  'rewards',
  'customers',
  'webhook_subscriptions',
  'locations',
  'posters',
];

describe('absolute URLs', () => {
  it('CONV-56 Absolute URLs are stored and returned as the URL Standard writes them', async () => {
    const hooks = `${store.store}/webhook_subscriptions`;
    const hook = (target_url: string) => ({ events: ['*'], target_url });
    for (const [urlInput, expectedUrl] of [
      ['https://example.com', 'https://example.com/'],
      ['HTTPS://Example.COM:443/a/../b', 'https://example.com/b'],
      ['https://müller.example/größe', 'https://xn--mller-kva.example/gr%C3%B6%C3%9Fe'],
      ['https://example.com./hooks', 'https://example.com./hooks'],
    ] as const) {
      const subscription = await store.post<WebhookSubscriptionJson>(hooks, hook(urlInput));
      expect([subscription.status, subscription.body.target_url]).toEqual([201, expectedUrl]);
      const at = `${hooks}/${subscription.body.id}`;
      const changed = await store.patch<WebhookSubscriptionJson>(at, { target_url: urlInput });
      expect([changed.status, changed.body.target_url]).toEqual([200, expectedUrl]);
      for (const repaired of [
        ` ${urlInput}`,
        `${urlInput} `,
        `${urlInput}\r\n`,
        `\ufeff${urlInput}`,
        `${urlInput}\u200b`,
        `${urlInput}/a\nb`,
        `${urlInput}/a\tb`,
        `${urlInput}/a b`,
        `${urlInput}\\a`,
        `${urlInput}#`,
        `${urlInput}#part`,
        urlInput.replace('://', ':'),
        urlInput.replace('://', ':/'),
        urlInput.replace('://', ':///'),
        urlInput.replace('://', ':\\\\'),
      ]) {
        expectRefused(await store.post(hooks, hook(repaired)), 'target_url');
        expectRefused(await store.patch(at, { target_url: repaired }), 'target_url');
      }
    }
  });
});

describe('paths and statuses', () => {
  it('CONV-30 A path id that is not an integer is 404', async () => {
    const ids = ['abc', '1.5', '1e3', "1'", '%27', '1%20', '1%00', '+1', 'null', '0x1', '１'];
    const { path: card } = await enrol(store);
    for (const resource of RESOURCES) {
      for (const id of ids) {
        const path = `${store.store}/${resource}/${id}`;
        expectFailure(await store.get(path), 404, 'not_found');
      }
    }
    for (const id of ids) {
      const path = card.replace(/\d+$/, id);
      expectFailure(await store.get(path), 404, 'not_found');
      expectFailure(await store.stamp(path), 404, 'not_found');
    }
    for (const id of ids)
      expectFailure(await store.get(`/api/v1/accounts/${id}`), 404, 'not_found');
  });

  it('CONV-31 A path id that no record can have, below 1 or too large for 64 bits, is 404', async () => {
    const ids = ['0', '-1', '9223372036854775807', '9223372036854775808', '9'.repeat(40)];
    for (const resource of RESOURCES) {
      for (const id of ids) {
        expectFailure(await store.get(`${store.store}/${resource}/${id}`), 404, 'not_found');
      }
    }
    for (const id of ids) {
      expectFailure(await store.get(`/api/v1/accounts/${id}`), 404, 'not_found');
      expectFailure(await store.get(`/api/v1/accounts/${id}/cards`), 404, 'not_found');
      const under = `${customers}/${id}/customer_cards`;
      expectFailure(await store.get(under), 404, 'not_found');
      expectFailure(await store.stamp(`${under}/${id}`), 404, 'not_found');
    }
  });

  it('CONV-32 A create returns 201', async () => {
    for (const { wrapper, method, path, fields } of await writes()) {
      if (method !== 'POST') continue;
      expect((await store.post(path, { [wrapper]: fields })).status).toBe(201);
    }
  });

  it('CONV-33 A POST that acts on a record returns 200', async () => {
    const { path, card, rewards: cardRewards } = await enrol(store, { rewards: [1] });
    expect((await store.stamp(path)).status).toBe(200);
    expect((await store.post(`${path}/redeem`, { reward_id: cardRewards[0]?.id })).status).toBe(
      200,
    );
    expect((await store.post(`${cards}/${card.id}/archive`)).status).toBe(200);
    expect((await store.post(`${cards}/${card.id}/unarchive`)).status).toBe(200);
  });

  it('CONV-34 A DELETE returns 204 with an empty body', async () => {
    const { rewards: cardRewards } = await enrol(store, { rewards: [1] });
    const hook = { events: ['*'], target_url: 'https://example.com/hooks' };
    const { body } = await store.post<{ id: number }>(`${store.store}/webhook_subscriptions`, hook);
    const paths = [`rewards/${cardRewards[0]?.id}`, `webhook_subscriptions/${body.id}`];
    for (const path of paths) {
      const { status, text } = await store.delete(`${store.store}/${path}`);
      expect([status, text]).toEqual([204, '']);
    }
  });
});

const INVALID = { card: { name: 7 }, reward: { name: 7 }, customer: { first_name: '' } };
const OVERSIZED = 'x'.repeat(2 * 1024 * 1024);
const UNREADABLE: [string, string, number][] = [
  ['text/plain', 'x', 415],
  ['application/json', '{"card":', 400],
  ['application/json', OVERSIZED, 413],
];

describe('the order of checks', () => {
  it('CONV-35 The token is checked before the body: whatever is sent without a valid token, it is 401', async () => {
    for (const [type, body] of UNREADABLE) {
      const headers = { 'content-type': type };
      const response = await service.anonymous.send('POST', cards, body, headers);
      expectFailure(response, 401, 'unauthorized');
    }
  });

  it('CONV-36 The store is checked before the body: media type, size and JSON of a request to an unreachable store do not matter', async () => {
    const { store: otherPath } = await service.newStore();
    for (const path of [
      `${otherPath}/cards`,
      '/api/v1/accounts/987654321/cards',
      '/api/v1/accounts/abc/cards',
    ]) {
      for (const [type, body] of UNREADABLE) {
        const response = await store.send('POST', path, body, { 'content-type': type });
        expectFailure(response, 404, 'not_found');
      }
    }
  });

  it('CONV-37 Media type, size and JSON are checked before the record is looked up', async () => {
    const { path } = await enrol(store);
    for (const resource of [cards, rewards, customers]) {
      const missing = `${resource}/999999999`;
      for (const [type, body, status] of UNREADABLE) {
        const response = await store.send('PATCH', missing, body, { 'content-type': type });
        expect([missing, response.status]).toEqual([missing, status]);
      }
    }
    const missing = path.replace(/\d+$/, '999999999');
    expect((await store.post(`${missing}/stamp`, '{"stamps":')).status).toBe(400);
  });

  it('CONV-38 The record is looked up before the fields are checked', async () => {
    const { path, customer } = await enrol(store);
    for (const resource of [cards, rewards, customers]) {
      const missing = `${resource}/999999999`;
      for (const body of [INVALID, {}, []]) {
        expectFailure(await store.patch(missing, body), 404, 'not_found');
      }
    }
    const card = `${customers}/${customer.id}/customer_cards/999999999`;
    for (const missing of [card, path.replace(/\/customers\/\d+/, '/customers/999999999')]) {
      for (const body of [{ stamps: 'x' }, { stamps: 1, location_id: 999_999_999 }]) {
        expectFailure(await store.post(`${missing}/stamp`, body), 404, 'not_found');
      }
      expectFailure(await store.post(`${missing}/redeem`, {}), 404, 'not_found');
    }
  });

  it('CONV-39 Whatever a field contains, the response is never a 5xx', async () => {
    const { card, path } = await enrol(store);
    const hostile: unknown[] = [
      null,
      true,
      -1,
      1e308,
      '',
      '\0',
      '\ud800',
      "'; drop table es.events; --",
      'x'.repeat(70_000),
      [],
      [[[[]]]],
      {},
      { $ne: 1 },
      nested(500),
    ];
    const targets: [string, string, string | undefined, string[]][] = [
      ['POST', cards, 'card', ['name', 'stamp_icon', 'stamps_required', 'auxiliary_fields']],
      ['PATCH', `${cards}/${card.id}`, 'card', ['initial_stamps', 'expires_at', 'strip_opacity']],
      ['POST', rewards, 'reward', ['card_id', 'name', 'description', 'position', 'active']],
      ['POST', rewards, 'reward', ['stamps_required']],
      ['POST', customers, 'customer', ['first_name', 'email', 'phone', 'birthday', 'metadata']],
      ['POST', customers, 'customer', ['external_references', 'sms_consent', 'last_name']],
      ['POST', `${path}/stamp`, undefined, ['stamps', 'note', 'occurred_at', 'external_ref']],
      ['POST', `${path}/redeem`, undefined, ['reward_id', 'staff_ref', 'location_id', 'source']],
    ];
    const unexpected: string[] = [];
    for (const [method, target, wrapper, fields] of targets) {
      for (const field of fields) {
        const requests = hostile.map(async (value) => {
          const inner = { name: 'n', first_name: 'f', email: 'e@x.example', [field]: value };
          const body = wrapper === undefined ? inner : { [wrapper]: inner };
          const { status } = await store.send(method, target, body);
          const isExpected = [200, 201, 404, 422].includes(status);
          if (!isExpected) unexpected.push(`${method} ${target} ${field} ${status}`);
        });
        await Promise.all(requests);
      }
    }
    expect(unexpected).toEqual([]);
  });
});

function nested(levels: number): unknown {
  let value: unknown = {};
  for (let i = 0; i < levels; i++) value = { a: value };
  return value;
}
