import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connect } from 'node:net';
import { Client, startService, type Service } from './support/service.js';
import { enrol } from './support/story.js';

type Failure = {
  error: string;
  code: string;
  errors?: Record<string, string[]>;
  resolution?: string;
  documentation_url: string;
  request_id: string;
};

let service: Service;
let store: Client;
let anonymous: Client;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  anonymous = new Client(service.baseUrl, store.accountId, null);
});
afterAll(() => service.stop());

describe('status', () => {
  it('answers without a token and says what is in force', async () => {
    const { status, body } = await anonymous.get('/api/v1/status');
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 'ok',
      api_version: 'v1',
      authentication: expect.stringContaining('Bearer'),
      documentation_url: 'https://cards.example/docs',
      developer_portal_url: 'https://cards.example/docs',
      openapi_url: 'https://cards.example/openapi.json',
      rate_limit: { limit: 100000, window_seconds: 60, scope: 'api_token' },
      versioning: {
        current: 'v1',
        supported: ['v1'],
        deprecated: [],
        policy_url: expect.any(String),
        signalling: expect.stringContaining('Sunset'),
      },
    });
  });

  it('does not mind a bad token', async () => {
    const stranger = new Client(service.baseUrl, 1, 'ink_nonsense');
    expect((await stranger.get('/api/v1/status')).status).toBe(200);
  });
});

describe('who may in', () => {
  it.each([undefined, 'Bearer', 'Bearer ', 'Bearer wrong', 'Basic abc', 'wrong', 'Bearer a b'])(
    'refuses the header %j with 401 and advice',
    async (authorization) => {
      const answer = await anonymous.send<Failure>(
        'GET',
        '/api/v1/accounts',
        undefined,
        authorization === undefined ? {} : { authorization },
      );
      expect(answer.status).toBe(401);
      expect(answer.body).toMatchObject({
        code: 'unauthorized',
        error: expect.any(String),
        resolution: expect.stringContaining('Bearer'),
        documentation_url: expect.stringContaining('https://'),
      });
    },
  );

  it('reads nothing of a stranger’s body', async () => {
    expect((await anonymous.post(`${store.store}/cards`, '{"card":')).status).toBe(401);
    expect((await anonymous.post(`${store.store}/cards`, 'x'.repeat(2_000_000))).status).toBe(401);
  });
});

describe('order of checks', () => {
  it('store before body', async () => {
    const other = await service.newStore();
    expect((await store.post(`${other.store}/cards`, '{"card":')).status).toBe(404);
    expect((await store.post('/api/v1/accounts/abc/cards', '{"card":')).status).toBe(404);
  });

  it('body before record, record before fields', async () => {
    const missing = `${store.store}/cards/999999`;
    expect((await store.send('PATCH', missing, '{"card":')).status).toBe(400);
    expect((await store.send('PATCH', missing, { card: { stamps_required: 99 } })).status).toBe(
      404,
    );
    expect((await store.send('PATCH', missing, {})).status).toBe(404);
  });
});

describe('bodies', () => {
  const cards = () => `${store.store}/cards`;

  it.each([
    ['malformed JSON', '{"card":', 400, 'malformed_json'],
    ['not JSON at all', 'hello', 400, 'malformed_json'],
    [
      'over 1 MiB',
      JSON.stringify({ card: { name: 'x'.repeat(2_000_000) } }),
      413,
      'payload_too_large',
    ],
  ])('%s', async (_name, body, status, code) => {
    const answer = await store.post<Failure>(cards(), body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.resolution).toEqual(expect.any(String));
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'x'])(
    'of the media type %s is refused',
    async (type) => {
      const answer = await store.send<Failure>('POST', cards(), 'name=x', { 'content-type': type });
      expect([answer.status, answer.body.code]).toEqual([415, 'unsupported_media_type']);
    },
  );

  it.each([['[]'], ['"text"'], ['1'], ['null'], ['true']])(
    'that is JSON but no object: %s',
    async (body) => {
      const answer = await store.post<Failure>(cards(), body);
      expect(answer.status).toBe(422);
      expect(Object.keys(answer.body.errors ?? {})).toEqual(['base']);
    },
  );

  it('must have its wrapper, or be bare where the contract shows none', async () => {
    const bareCard = await store.post<Failure>(cards(), { name: 'Coffee' });
    expect(Object.keys(bareCard.body.errors ?? {})).toEqual(['card']);
    const { card } = await enrol(store);
    const bare = { card_id: card.id, name: 'Cake', stamps_required: 3 };
    expect((await store.post(`${store.store}/rewards`, bare)).status).toBe(201);
    const neither = await store.post<Failure>(`${store.store}/rewards`, { other: 1 });
    expect(Object.keys(neither.body.errors ?? {})).toEqual(['reward']);
    const wrong = await store.post<Failure>(cards(), { card: 'Coffee' });
    expect(Object.keys(wrong.body.errors ?? {})).toEqual(['card']);
  });

  it('may have keys that nobody knows, whatever their names', async () => {
    const body =
      '{"card":{"name":"Coffee","id":7,"__proto__":{"a":1},"constructor":{"prototype":{"b":1}}},"more":1}';
    expect((await store.post(cards(), body)).status).toBe(201);
  });

  it('name every wrong field at once', async () => {
    const answer = await store.post<Failure>(cards(), {
      card: { stamps_required: 0, initial_stamps: 'x', text_color: 7 },
    });
    expect(Object.keys(answer.body.errors ?? {}).sort()).toEqual([
      'initial_stamps',
      'name',
      'stamps_required',
      'text_color',
    ]);
  });

  it('may be missing, with and without a content type', async () => {
    const { card } = await enrol(store);
    expect((await store.post(`${cards()}/${card.id}/archive`)).status).toBe(200);
    const typed = await store.send('POST', `${cards()}/${card.id}/unarchive`, '', {
      'content-type': 'application/json',
    });
    expect(typed.status).toBe(200);
  });
});

describe('failures', () => {
  it.each([
    ['GET', '/api/v1/accounts/1/unknown'],
    ['GET', '/nowhere'],
    ['GET', `/api/v1/accounts/${'9'.repeat(300)}`],
    ['GET', '/api/v1/accounts/%E0%A4%A'],
    ['GET', '/api/v1/accounts/1%00/cards'],
  ])('%s %s is the error of the contract, in JSON', async (method, path) => {
    const answer = await store.send<Failure>(method, path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(answer.body).toMatchObject({ code: 'not_found', error: expect.any(String) });
  });

  it('answer what is no HTTP with JSON too', async () => {
    const { port } = new URL(service.baseUrl);
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write('hello there\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => (text += String(chunk)));
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1.1 400 [^]*application\/json[^]*"error"/);
  });
});

describe('hostile input', () => {
  const injections = [
    "'; drop table es.events; --",
    "' or 1=1 --",
    '${7*7}',
    '{{7*7}}',
    '<script>alert(1)</script>',
    '../../etc/passwd',
    '\u202e',
    '%00',
    '\\u0000',
  ];

  it('is text like any other', async () => {
    for (const text of injections) {
      const made = await store.post<{ name: string }>(`${store.store}/cards`, {
        card: { name: text },
      });
      expect([made.status, made.body.name]).toEqual([201, text]);
      const search = await store.get(`${store.store}/customers?search=${encodeURIComponent(text)}`);
      expect(search.status).toBe(200);
    }
  });

  const hostile: unknown[] = [
    null,
    true,
    -1,
    1e308,
    '',
    'x'.repeat(10_000),
    '\0',
    '\ud800',
    [],
    [[[[]]]],
    {},
    { $ne: 1 },
    deep(500),
  ];

  it.each([
    [
      'cards',
      'card',
      ['name', 'stamps_required', 'auxiliary_fields', 'expires_at', 'strip_opacity'],
    ],
    [
      'rewards',
      'reward',
      ['card_id', 'name', 'stamps_required', 'description', 'position', 'active'],
    ],
    [
      'customers',
      'customer',
      [
        'first_name',
        'email',
        'phone',
        'birthday',
        'metadata',
        'external_references',
        'sms_consent',
      ],
    ],
  ])('in any field of %s is never our failure', async (path, wrapper, fields) => {
    for (const field of fields) {
      for (const value of hostile) {
        const body = { [wrapper]: { name: 'n', first_name: 'f', email: 'e@x.de', [field]: value } };
        const answer = await store.post<Failure>(`${store.store}/${path}`, body);
        expect([200, 201, 404, 422]).toContain(answer.status);
        expect(typeof answer.body.error).toBe(answer.status >= 400 ? 'string' : 'undefined');
      }
    }
  });

  it.each([50_000, 400_000])('of %i levels of nesting is refused', async (levels) => {
    const nested = '['.repeat(levels) + ']'.repeat(levels);
    const answer = await store.post<Failure>(
      `${store.store}/customers`,
      `{"customer":{"first_name":"f","email":"deep@x.de","metadata":{"a":${nested}}}}`,
    );
    expect(answer.status).toBe(422);
    expect(Object.keys(answer.body.errors ?? {})).toEqual(['metadata']);
  });

  it('in ids and queries is never our failure', async () => {
    const ids = [
      '0',
      '-1',
      '1.5',
      '1e3',
      'abc',
      "1'",
      '9223372036854775808',
      '%27',
      '1%20',
      '+1',
      'null',
    ];
    for (const id of ids) {
      for (const path of [
        `cards/${id}`,
        `rewards/${id}`,
        `customers/${id}`,
        `customers/${id}/customer_cards`,
      ]) {
        expect((await store.get(`${store.store}/${path}`)).status).toBe(404);
      }
    }
    for (const query of [
      'page=0',
      'page=x',
      'page=99999999999999999999',
      'items=x',
      'search=%00',
      'search=%ED%A0%80',
      'source=a',
      'external_id=b',
    ]) {
      const answer = await store.get<Failure>(`${store.store}/customers?${query}`);
      expect([query, [200, 422].includes(answer.status)]).toEqual([query, true]);
    }
    const repeated = await store.get(`${store.store}/customers?search=a&search=b&page=1&page=2`);
    expect(repeated.status).toBe(200);
  });
});

function deep(levels: number): unknown {
  let value: unknown = {};
  for (let i = 0; i < levels; i++) value = { a: value };
  return value;
}
