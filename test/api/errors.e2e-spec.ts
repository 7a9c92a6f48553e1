import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import {
  expectFailure,
  expectCodes,
  expectRefused,
  useService,
  type Failure,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { exchange } from '../support/http/raw-request.js';
import { Client, type ApiResponse } from '../support/services/service.js';
import { StoppableServer } from '../support/database/stoppable-postgres.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const PUBLIC_URL = 'https://cards.example';
const MIB = 1024 * 1024;

const service = useService({ PUBLIC_URL });
const breaking = useService();
const store = service.useStore();

/** One failure of each kind that a caller can bring about. */
async function failures(): Promise<[number, ApiResponse<Failure>][]> {
  const cards = `${store.store}/cards`;
  const text = { 'content-type': 'text/plain' };
  return [
    [400, await store.post(cards, '{"card":')],
    [401, await service.anonymous.get(cards)],
    [404, await store.get(`${cards}/999999999`)],
    [404, await store.get('/api/v1/nothing')],
    [413, await store.post(cards, 'x'.repeat(MIB + 1))],
    [415, await store.send('POST', cards, 'x', text)],
    [422, await store.post(cards, { card: {} })],
  ];
}

describe('failures', () => {
  it('ERR-01 Every failure is JSON with a sentence in `error`, never HTML; only a browser gets a page outside of `/api/v1`', async () => {
    for (const [status, response] of await failures()) {
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(response.body.error).toMatch(/^[A-Za-z].* /);
    }
    const outside = await new Client(service.running.baseUrl, 0, null).get<Failure>('/nowhere');
    expect([outside.status, typeof outside.body.error]).toEqual([404, 'string']);
  });

  it('ERR-02 Every failure has a `code`', async () => {
    const codes = (await failures()).map(([, { body }]) => body.code);
    expect(codes).toEqual([
      'malformed_json',
      'unauthorized',
      'not_found',
      'not_found',
      'payload_too_large',
      'unsupported_media_type',
      'validation_failed',
    ]);
  });

  it('ERR-03 Every failure has a `request_id`, the same as the header `X-Request-Id`', async () => {
    for (const [, { body, headers }] of await failures()) {
      expect(body.request_id).toMatch(/^[\da-f-]{36}$/);
      expect(body.request_id).toBe(headers.get('x-request-id'));
    }
  });

  it('ERR-04 Every failure has a `documentation_url` that resolves to the place of its code on a page of all codes, which says what happened and what to do', async () => {
    const links = new Map(
      (await failures()).map(([, { body }]) => [body.code, body.documentation_url]),
    );
    expect(links.size).toBeGreaterThan(3);
    for (const [code, link] of links) {
      expect(link).toBe(`${PUBLIC_URL}/docs/errors#${code}`);
      const page = await service.anonymous.get(link.slice(PUBLIC_URL.length));
      expect([page.status, page.text]).toEqual([200, expect.stringContaining(`id="${code}"`)]);
    }
  });

  it('ERR-05 Every 422 has `errors`: an object of fields, each with a list of at least one message', async () => {
    const { body } = await store.post<Failure>(`${store.store}/cards`, { card: { name: ' ' } });
    expect(body.errors).toEqual({ name: [expect.stringMatching(/\w/)] });
  });

  it('ERR-06 Fields in `errors` are named without their wrapper: `email`, not `customer.email`', async () => {
    const customer = { first_name: 'Anna', email: 'nowhere' };
    expectRefused(await store.post(`${store.store}/customers`, { customer }), 'email');
    expectRefused(await store.post(`${store.store}/cards`, { card: {} }), 'name');
    expectRefused(await store.post(`${store.store}/rewards`, { reward: {} }), [
      'card_id',
      'name',
      'stamps_required',
    ]);
  });

  it('ERR-07 An error of the whole record is listed under `base`', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const redeem = { reward_id: rewards[0]?.id };
    expectRefused(await store.post(`${path}/redeem`, redeem), 'base', 'insufficient_stamps');
  });

  it('ERR-08 All invalid fields of a request are reported at once', async () => {
    const card = { stamps_required: 0, initial_stamps: 'x', text_color: 7, strip_type: 'x' };
    expectRefused(await store.post(`${store.store}/cards`, { card }), [
      'name',
      'stamps_required',
      'initial_stamps',
      'text_color',
      'strip_type',
    ]);
  });

  it('ERR-09 A field that is missing, out of range or of the wrong type is 422 `validation_failed`', async () => {
    for (const name of [undefined, 'x'.repeat(256), 7, [], {}, true]) {
      expectRefused(await store.post(`${store.store}/cards`, { card: { name } }), 'name');
    }
  });

  it('ERR-10 A record that does not exist is 404 `not_found`', async () => {
    for (const path of ['cards/999999999', 'rewards/999999999', 'customers/999999999']) {
      expectFailure(await store.get(`${store.store}/${path}`), 404, 'not_found');
    }
  });

  it('ERR-11 A path that does not exist is 404 `not_found`', async () => {
    for (const path of ['/api/v1/x', '/api/v2/accounts', `${store.store}/x`, '/x', '/api']) {
      expectFailure(await store.get(path), 404, 'not_found');
    }
  });

  it('ERR-12 A method that a path does not have is 404 or 405', async () => {
    for (const [method, path] of [
      ['PUT', '/api/v1/accounts'],
      ['DELETE', store.store],
      ['PATCH', `${store.store}/cards`],
      ['PUT', `${store.store}/customers/1`],
    ] as const) {
      expect([404, 405]).toContain((await store.send(method, path)).status);
    }
  });

  it('ERR-13 A path that cannot be decoded is 404', async () => {
    for (const path of [`${store.store}/%E0%A4%A`, `${store.store}/cards/%`]) {
      expectFailure(await store.get(path), 404, 'not_found');
    }
  });

  it('ERR-14 A body that is not valid JSON in UTF-8 is 400 `malformed_json`, with advice in `resolution`', async () => {
    for (const body of ['{"card":', 'hello', "{'card':1}", '{"card":1}}', '{"a":1,}', '\u0000']) {
      const response = await store.post<Failure>(`${store.store}/cards`, body);
      expectFailure(response, 400, 'malformed_json');
      expect(response.body.resolution).toMatch(/\w/);
    }
    const latin1 = new Uint8Array(Buffer.from('{"card":{"name":"Café"}}', 'latin1'));
    expectFailure(await store.post<Failure>(`${store.store}/cards`, latin1), 400, 'malformed_json');
  });

  it('ERR-15 A body over 1 MiB is 413 `payload_too_large`, with advice in `resolution`', async () => {
    const response = await store.post<Failure>(`${store.store}/cards`, sized(MIB + 1));
    expectFailure(response, 413, 'payload_too_large');
    expect(response.body.resolution).toMatch(/\w/);
  });

  it('ERR-16 A body of exactly 1 MiB is read', async () => {
    expect((await store.post(`${store.store}/cards`, sized(MIB))).status).toBe(201);
  });

  it('ERR-17 A body of another media type is 415 `unsupported_media_type`, with advice in `resolution`', async () => {
    for (const type of [
      'text/plain',
      'text/json',
      'text/csv',
      'application/octet-stream',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'x',
    ]) {
      const response = await store.send<Failure>('POST', `${store.store}/cards`, '{}', {
        'content-type': type,
      });
      expectFailure(response, 415, 'unsupported_media_type');
      expect(response.body.resolution).toMatch(/application\/json/);
    }
  });

  it('ERR-18 A value that is already taken is 422, never 409', async () => {
    const { customer, customerCard } = await enrol(store);
    const again = { first_name: 'Bea', email: customer.email };
    expectRefused(
      await store.post(`${store.store}/customers`, { customer: again }),
      'email',
      'taken',
    );
    const cards = `${store.store}/customers/${customer.id}/customer_cards`;
    expectRefused(await store.post(cards, { card_id: customerCard.card_id }), 'card_id', 'taken');
  });

  it('ERR-19 Losing a race for the same value is 422 as well', async () => {
    const customer = { first_name: 'Bea', email: 'race@example.com' };
    const responses = await Promise.all(
      Array.from({ length: 10 }, () => store.post(`${store.store}/customers`, { customer })),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([201, ...Array(9).fill(422)]);
    for (const response of responses)
      if (response.status === 422) expectRefused(response, 'email', 'taken');
  });

  it('ERR-20 While the database is unavailable the response is 503 `unavailable` with `Retry-After`, and nothing is written', async () => {
    const shop = await breaking.newStore();
    const { path } = await enrol(shop);
    await allowConnections(false);
    try {
      const responses: ApiResponse<Failure>[] = [];
      await eventually(
        async () => {
          const response = await shop
            .post<Failure>(`${path}/stamp`, { stamps: 1 })
            .catch(noResponse);
          if (response) responses.push(response);
          return responses.filter(({ status }) => status === 503).length;
        },
        (refused) => refused >= 3,
      );
      const refused = responses.filter(({ status }) => status >= 500);
      for (const response of refused) {
        expectFailure(response, 503, 'unavailable');
        expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      }
      await allowConnections(true);
      await eventually(
        () => shop.get(path),
        ({ status }) => status === 200,
      );
      const ids = await writtenBy(refused);
      expect(ids).toEqual([]);
    } finally {
      await allowConnections(true);
    }
  });

  it('ERR-23 A database that is full, can only be read or has no connections left is unavailable too', async () => {
    const shop = await breaking.newStore();
    const { path } = await enrol(shop);
    const { query } = breaking.running.database;
    const refused: ApiResponse<Failure>[] = [];
    const refuse = async () => {
      const response = await eventually(
        () => shop.post<Failure>(`${path}/stamp`, { stamps: 1 }).catch(noResponse),
        (result) => result?.status === 503,
      );
      if (response) refused.push(response);
    };
    await query(`create function fail() returns trigger language plpgsql as $$
      begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$`);
    await query(
      'create trigger failing before insert on es.events for each row execute function fail()',
    );
    await refuse();
    await query('drop function fail cascade');
    await asAdmin(`alter database ${databaseName()} set default_transaction_read_only = on`, []);
    await breakConnections();
    await refuse();
    await asAdmin(`alter database ${databaseName()} reset default_transaction_read_only`, []);
    await asAdmin('alter role inkpad_app connection limit 0', []);
    await breakConnections();
    await refuse();
    await asAdmin('alter role inkpad_app connection limit -1', []);
    for (const response of refused) {
      expectFailure(response, 503, 'unavailable');
      expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(response.body.resolution).toContain('Nothing was written');
    }
    await breakConnections();
    await eventually(
      () => shop.get(path),
      ({ status }) => status === 200,
    );
    expect(await writtenBy(refused)).toEqual([]);
  });

  it('ERR-24 While the database is silent, the response is there within 8 s if nothing was written', async () => {
    const shop = await breaking.newStore();
    const { path } = await enrol(shop);
    const server = await StoppableServer.of(breaking.running.database);
    server.stop();
    try {
      const responses = await Promise.all([
        shop.get<Failure>(path),
        shop.get<Failure>(`${shop.store}/customers`),
        shop.send<Failure>('PATCH', `${shop.store}/customers/999999`, { customer: {} }),
      ]);
      for (const response of responses) expectFailure(response, 503, 'unavailable');
    } finally {
      server.goOn();
    }
    await eventually(
      () => shop.get(path),
      ({ status }) => status === 200,
    );
  });

  it('ERR-21 A 5xx means that nothing was written', async () => {
    const shop = await breaking.newStore();
    const { path } = await enrol(shop);
    const responses: ApiResponse<Failure>[] = [];
    for (let round = 0; round < 5; round++) {
      const stamping = Array.from({ length: 20 }, () =>
        shop.post<Failure>(`${path}/stamp`, { stamps: 1 }).catch(noResponse),
      );
      const [stamped] = await Promise.all([Promise.all(stamping), breakConnections()]);
      for (const response of stamped) if (response) responses.push(response);
    }
    const { body } = await eventually(
      () => shop.get<CustomerCardDetailJson>(path),
      ({ status }) => status === 200,
    );
    const done = responses.filter(({ status }) => status === 200).length;
    const lostCount = 100 - responses.length;
    expect(body.stamps_count).toBeGreaterThanOrEqual(done);
    expect(body.stamps_count).toBeLessThanOrEqual(done + lostCount);
    expect(await writtenBy(responses.filter(({ status }) => status >= 500))).toEqual([]);
  });

  it('ERR-22 A request that is not HTTP, HTTP/1.1 without `Host`, or one with two or an invalid one gets a 400, in JSON too', async () => {
    const { baseUrl } = service.running;
    const authorization = `Authorization: Bearer ${store.token ?? ''}`;
    for (const request of [
      'hello there',
      `GET ${store.store} HTTP/1.1\r\n${authorization}\r\nConnection: close`,
      ...[
        ['cards.example', 'cards.example'],
        ['cards.example', 'other.example'],
        ['', 'cards.example'],
        ['cards.example, other.example'],
        ['cards example'],
        ['user@cards.example'],
        ['cards.example/path'],
        ['cards.example:x'],
        ['[::1'],
        ['c\u00e4rds.example'],
      ].map((hosts) => {
        const fields = hosts.map((host) => `Host: ${host}`).join('\r\n');
        return `GET ${store.store} HTTP/1.1\r\n${fields}\r\n${authorization}\r\nConnection: close`;
      }),
      `GET ${store.store} HTTP/1.0\r\nHost: x\r\nHOST: x\r\n${authorization}`,
    ]) {
      const response = await exchange(baseUrl, `${request}\r\n\r\n`);
      expect(response).toMatch(/^HTTP\/1.1 400 [^]*ratelimit-limit: /i);
      expect(response).toMatch(/content-type: application\/json/i);
      const body = JSON.parse(response.slice(response.indexOf('{'))) as Failure;
      expect([typeof body.error, body.code]).toEqual(['string', 'malformed_request']);
    }
    const old = `GET /api/v1/status HTTP/1.0\r\n\r\n`;
    expect(await exchange(baseUrl, old)).toMatch(/^HTTP\/1.1 200 /);
    for (const host of ['', 'cards.example', 'my_host:3000', '127.0.0.1:80', '[::1]:3000', 'x.:']) {
      const head = `GET /api/v1/status HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      expect([host, (await exchange(baseUrl, head)).slice(0, 12)]).toEqual([host, 'HTTP/1.1 200']);
    }
  });
});

/** A card in a body of this many bytes, most of it in a key that nobody reads. */
function sized(bytes: number): string {
  const body = (filler: string) => JSON.stringify({ card: { name: 'Coffee' }, filler });
  return body('x'.repeat(bytes - body('').length));
}

/** The service closed the connection: it cannot know, or the request never came through. */
function noResponse(error: unknown): undefined {
  if (!(error instanceof TypeError)) throw error;
}

async function asAdmin(statement: string, values: unknown[]): Promise<void> {
  const url = new URL(breaking.running.database.ownerUrl);
  url.pathname = '/postgres';
  const client = new pg.Client(url.href);
  await client.connect();
  try {
    await client.query(statement, values);
  } finally {
    await client.end();
  }
}

const databaseName = () => new URL(breaking.running.database.url).pathname.slice(1);

async function allowConnections(allowed: boolean): Promise<void> {
  await asAdmin('update pg_database set datallowconn = $2 where datname = $1', [
    databaseName(),
    allowed,
  ]);
  if (!allowed) await breakConnections();
}

/** All but the one that the test itself holds. Waits for their end, so that no request finds one that is left. */
function breakConnections(): Promise<void> {
  return asAdmin(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity
     where datname = $1 and application_name like 'inkpad %'`,
    [databaseName()],
  );
}

/** Request ids of these responses that stand in the history. */
async function writtenBy(responses: ApiResponse<Failure>[]): Promise<string[]> {
  const ids = new Set(responses.map(({ body }) => body.request_id));
  return (await breaking.running.history())
    .map(({ meta }) => meta.requestId)
    .filter((id) => ids.has(id));
}

describe('a damaged history', () => {
  it('ERR-28 A record whose history somebody has damaged in the event store refuses changes with 503 `history_damaged`, and advice that does not ask for a repetition', async () => {
    const { card, path } = await enrol(store);
    const { database } = service.running;
    await database.query('update cards set revision = revision + 3 where id = $1', [card.id]);
    const at = `${store.store}/cards/${card.id}`;
    const refused = await store.send<Failure>('PATCH', at, { card: { name: 'Tea' } });
    expect([refused.status, refused.body.code]).toEqual([503, 'history_damaged']);
    expect(refused.headers.get('retry-after')).toBe('3600');
    expect(refused.body.resolution).toMatch(/again does not help/);
    expect((await store.get(at)).status).toBe(200);
    expect((await store.stamp(path)).status).toBe(200);
  });
});

describe('the codes of a 422', () => {
  const messages = { stamp_message: '{money}', reward_message: 'x'.repeat(161) };

  it('ERR-29 Every 422 has `error_codes` too: the same fields as `errors`, each with one code for each message, in the same order, such as `too_long`', async () => {
    const card = { name: ' ', stamps_required: 'x', initial_stamps: 10_001, ...messages };
    const { body } = await store.post<Failure>(`${store.store}/cards`, { card });
    expectCodes(body.error_codes, body.errors);
    expect(body.error_codes).toEqual({
      name: ['blank'],
      stamps_required: ['not_integer'],
      initial_stamps: ['too_large'],
      stamp_message: ['unknown_placeholder'],
      reward_message: ['too_long'],
    });
    const { rewards, path } = await enrol(store, { rewards: [5] });
    const redeem = { reward_id: rewards[0]?.id };
    const refused = await store.post<Failure>(`${path}/redeem`, redeem);
    expect(refused.body.error_codes).toEqual({ base: ['reward_too_expensive'] });
    const query = new URLSearchParams({ mapping: '{"Mail":"email"}' });
    const file = new Uint8Array(Buffer.from('first_name,first_name\nAnna,Anna\n'));
    const several = await store.send<Failure>('POST', `${store.store}/imports?${query}`, file, {
      'content-type': 'text/csv',
    });
    expectCodes(several.body.error_codes, several.body.errors);
    expect(several.body.error_codes).toMatchObject({
      mapping: ['column_unknown', 'column_repeated', 'column_ambiguous'],
    });
    const { text } = await service.anonymous.get('/docs/errors.md');
    expect(text).toContain('- `too_long`: must have at most {max} characters');
  });

  it('ERR-30 A message that names several parts of a field has the code of the first', async () => {
    const location = { name: 'Shop', address: 'Main Street 1', pin: { latitude: 91 } };
    const { body } = await store.post<Failure>(`${store.store}/locations`, { location });
    expectCodes(body.error_codes, body.errors);
    expect(body.errors).toEqual({ pin: [expect.stringMatching(/^latitude must.*, longitude is/)] });
    expect(body.error_codes).toEqual({ pin: ['out_of_range'] });
  });
});
