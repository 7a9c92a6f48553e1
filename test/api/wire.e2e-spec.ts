import { beforeAll, describe, expect, it } from '@jest/globals';
import { STATUS_CODES } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { runAtTime } from '../support/services/clock.js';
import {
  expectFailure,
  useService,
  type ContractClient,
  type Failure,
  type Problem,
} from '../support/http/contract.js';
import { rawGet } from '../support/http/raw-request.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const ORIGIN = 'https://till.example';
const PROBLEM = 'application/problem+json';
const UUID7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

const service = useService({ PUBLIC_URL: 'https://cards.example' });
const APP = 'capacitor://localhost';
const scripts = useService({ CORS_ORIGINS: `https://shop.example, ${ORIGIN}, ${APP}` });
const anyScripts = useService({ CORS_ORIGINS: '*' });
const retired = useService({
  CORS_ORIGINS: ORIGIN,
  RATE_LIMIT_PER_MINUTE: '2',
  API_V1_DEPRECATION_DATE: '2040-01-01',
  API_V1_SUNSET_DATE: '2050-01-01',
});
const store = service.useStore();
let cards: string;

beforeAll(async () => {
  cards = `${store.store}/cards`;
  for (let i = 0; i < 5; i++) await store.post(cards, { card: { name: 'Coffee' } });
});

const get = <T>(path: string, headers: Record<string, string>, client = store) =>
  client.send<T>('GET', path, undefined, headers);

const rawCards = (headers: Record<string, string>) =>
  rawGet(store.baseUrl + cards, { authorization: `Bearer ${store.token}`, ...headers });

/** Failures from each layer that responds. */
async function failures(headers: Record<string, string>): Promise<ApiResponse<Problem>[]> {
  const large = JSON.stringify('x'.repeat(2_000_000));
  return [
    await get<Problem>(cards, headers, service.anonymous),
    await get<Problem>(`${cards}/999999999`, headers),
    await get<Problem>('/api/v1/nothing?secret=1', headers),
    await store.send<Problem>('POST', cards, '{', headers),
    await store.send<Problem>('POST', cards, {}, headers),
    await store.send<Problem>('POST', cards, large, headers),
    await store.send<Problem>('PUT', '/api/v1/accounts', undefined, headers),
    await get<Problem>('/api/v1/accounts/%E0%A4%A', headers),
    await get<Problem>('/nowhere', headers),
  ];
}

describe('request ids', () => {
  it("HTTP-01 Every response has `X-Request-Id`: the caller's own if it matches `[A-Za-z0-9._-]{1,128}`", async () => {
    for (const id of ['till-7.42_x', 'A', 'x'.repeat(128)]) {
      const done = await get(cards, { 'x-request-id': id });
      expect(done.headers.get('x-request-id')).toBe(id);
      const failed = await get<Failure>('/api/v1/nothing', { 'x-request-id': id });
      expect([failed.headers.get('x-request-id'), failed.body.request_id]).toEqual([id, id]);
    }
  });

  it('HTTP-02 A request without a valid `X-Request-Id` gets a new UUID of version 7', async () => {
    const requestIds = new Set<string>();
    for (const headers of [
      {},
      {},
      { 'x-request-id': 'a b' },
      { 'x-request-id': 'x'.repeat(129) },
    ]) {
      const id = (await get(cards, headers as Record<string, string>)).headers.get('x-request-id');
      expect(id).toMatch(UUID7);
      requestIds.add(id ?? '');
    }
    expect(requestIds.size).toBe(4);
  });
});

describe('compression', () => {
  it('HTTP-03 Responses are compressed with gzip if `Accept-Encoding` allows it', async () => {
    const plain = await rawCards({});
    for (const accepted of ['gzip', 'br;q=0, gzip']) {
      const { headers, body } = await rawCards({ 'accept-encoding': accepted });
      expect(headers['content-encoding']).toBe('gzip');
      expect(headers['content-type']).toBe(plain.headers['content-type']);
      expect(body.length).toBeLessThan(plain.body.length);
      expect(gunzipSync(body).equals(plain.body)).toBe(true);
    }
  });

  it('HTTP-04 Responses are compressed with brotli if `Accept-Encoding` prefers it', async () => {
    const plain = await rawCards({});
    for (const accepted of ['br', 'gzip;q=0.5, br;q=1', 'gzip, deflate, br']) {
      const { headers, body } = await rawCards({ 'accept-encoding': accepted });
      expect(headers['content-encoding']).toBe('br');
      expect(brotliDecompressSync(body).equals(plain.body)).toBe(true);
    }
  });

  it('HTTP-05 Without `Accept-Encoding` nothing is compressed', async () => {
    for (const requestHeaders of [
      {},
      { 'accept-encoding': 'identity' },
      { 'accept-encoding': 'gzip;q=0, br;q=0' },
    ]) {
      const { headers, body } = await rawCards(requestHeaders as Record<string, string>);
      expect(headers['content-encoding']).toBeUndefined();
      expect(JSON.parse(body.toString())).toHaveLength(5);
    }
  });

  it('HTTP-06 Responses that may be compressed have `Vary: Accept-Encoding`', async () => {
    for (const requestHeaders of [{}, { 'accept-encoding': 'gzip' }]) {
      const { headers } = await rawCards(requestHeaders as Record<string, string>);
      expect(headers.vary).toMatch(/(^|, *)accept-encoding(,|$)/i);
    }
  });
});

/** Returns the headers that equal requests have in common: without the time and the remaining limit. */
const steady = ({ headers }: ApiResponse) =>
  Object.fromEntries(
    [...headers].filter(([name]) => !/^(date|connection|keep-alive|ratelimit-re)/.test(name)),
  );

describe('HEAD', () => {
  it('HTTP-07 HEAD responds like GET, without the body', async () => {
    const { customer, path: customerCard } = await enrol(store);
    for (const path of [
      '/api/v1/status',
      '/api/v1/accounts',
      store.store,
      cards,
      `${store.store}/customers/${customer.id}`,
      customerCard,
      `${cards}/999999999`,
      '/api/v1/nothing',
      '/nothing',
      '/docs',
      '/docs/versioning',
      '/openapi.json',
      '/health/live',
    ]) {
      // The length of what is packed on the fly is not known beforehand.
      const same = { 'accept-encoding': 'identity', 'x-request-id': 'same' };
      const full = await get(path, same);
      const head = await store.send('HEAD', path, undefined, same);
      expect([path, head.status, head.text]).toEqual([path, full.status, '']);
      expect([path, steady(head)]).toEqual([path, steady(full)]);
    }
  });

  it('HTTP-08 HEAD needs a token where GET does', async () => {
    const { anonymous } = service;
    expect((await anonymous.send('HEAD', '/api/v1/accounts')).status).toBe(401);
    expect((await anonymous.send('HEAD', '/api/v1/status')).status).toBe(200);
  });
});

describe('problem details', () => {
  it('HTTP-09 If `Accept` prefers `application/problem+json`, a failure has that media type', async () => {
    const responses = await failures({ accept: PROBLEM });
    const statuses = responses.map(({ status }) => status);
    expect(statuses).toEqual([401, 404, 404, 400, 422, 413, 405, 404, 404]);
    for (const response of responses) {
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
      expect(listOf(response, 'vary')).toContain('accept');
    }
  });

  it('HTTP-10 A failure as `application/problem+json` is the same error object with `type`, `title`, `status`, `detail` and `instance`', async () => {
    const plain = await failures({});
    const problems = await failures({ accept: PROBLEM });
    for (const [i, { status, body }] of problems.entries()) {
      const { type, title, status: bodyStatus, detail, instance, ...rest } = body;
      expect(type).toBe(`https://cards.example/docs/errors#${body.code}`);
      expect(title).toBe(STATUS_CODES[status]);
      expect([bodyStatus, detail]).toEqual([status, body.error]);
      expect(instance).toMatch(/^\/[^?]*$/);
      expect({ ...rest, request_id: '' }).toEqual({ ...plain[i]?.body, request_id: '' });
    }
  });

  it('HTTP-11 If `Accept` prefers JSON or has no preference, or is missing, a failure is `application/json`', async () => {
    for (const accept of [
      'application/json',
      '*/*',
      'application/*',
      'text/html',
      'text/html,application/xhtml+xml,*/*;q=0.8',
      '',
      ';;;q=',
    ]) {
      const all = await failures({ accept });
      // The last one is outside the API, where a browser gets a page.
      for (const { headers } of accept.startsWith('text/html') ? all.slice(0, -1) : all) {
        expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
      }
    }
  });

  it('HTTP-12 Weights in `Accept` are respected', async () => {
    for (const [accept, preferred] of [
      [`${PROBLEM}, application/json;q=0.9`, true],
      [`application/json;q=0.5, ${PROBLEM};q=0.6`, true],
      [`application/*;q=0.2, ${PROBLEM}`, true],
      [`application/json, ${PROBLEM};q=0.9`, false],
      [`${PROBLEM};q=0`, false],
    ] as const) {
      const { headers } = await get('/api/v1/nothing', { accept });
      const isProblem = headers.get('content-type')?.startsWith(PROBLEM);
      expect([accept, isProblem]).toEqual([accept, preferred]);
    }
  });

  it('HTTP-13 A success is always `application/json`', async () => {
    const { status, headers } = await get(cards, { accept: PROBLEM });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
  });
});

const corsHeaderNamesOf = ({ headers }: ApiResponse) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control'));
const listOf = ({ headers }: ApiResponse, name: string) =>
  (headers.get(name) ?? '').toLowerCase().split(/, */);
const preflight = (client: ContractClient, origin: string, path = '/api/v1/accounts') =>
  client.send('OPTIONS', path, undefined, {
    origin,
    'access-control-request-method': 'PATCH',
    'access-control-request-headers': 'authorization, content-type, idempotency-key',
  });

describe('scripts of other origins', () => {
  it('HTTP-14 Without `CORS_ORIGINS` no response has a CORS header', async () => {
    const origin = { origin: ORIGIN };
    const responses = [
      await get(cards, origin),
      ...(await failures(origin)),
      await preflight(service.anonymous, ORIGIN),
    ];
    for (const response of responses) expect(corsHeaderNamesOf(response)).toEqual([]);
    expect(responses.at(-1)?.status).toBe(401);
  });

  it('HTTP-15 An origin that `CORS_ORIGINS` lists is allowed by name, on failures too', async () => {
    const own = await scripts.newStore();
    for (const origin of [ORIGIN, 'https://shop.example']) {
      for (const { headers } of [
        await get('/api/v1/accounts', { origin }, own),
        await get('/api/v1/nothing', { origin }, own),
        await get('/api/v1/accounts', { origin }, scripts.anonymous),
        await own.send('POST', `${own.store}/cards`, '{', { origin }),
      ]) {
        expect(headers.get('access-control-allow-origin')).toBe(origin);
      }
    }
  });

  it('HTTP-16 An origin that `CORS_ORIGINS` does not list is not allowed', async () => {
    const own = await scripts.newStore();
    for (const origin of [
      'https://evil.example',
      `${ORIGIN}.evil.example`,
      'http://till.example',
      'null',
    ]) {
      for (const { headers } of [
        await get('/api/v1/accounts', { origin }, own),
        await preflight(scripts.anonymous, origin),
      ]) {
        expect(headers.get('access-control-allow-origin')).toBeNull();
      }
    }
  });

  it('HTTP-17 Responses that depend on the origin have `Vary: Origin`', async () => {
    const own = await scripts.newStore();
    for (const origin of [ORIGIN, 'https://evil.example']) {
      expect(listOf(await get('/api/v1/accounts', { origin }, own), 'vary')).toContain('origin');
    }
  });

  it('HTTP-18 A preflight of a listed origin needs no token and allows the methods and headers of this document', async () => {
    for (const path of ['/api/v1/accounts', '/api/v1/accounts/1/cards/1', '/api/v1/nothing']) {
      const response = await preflight(scripts.anonymous, ORIGIN, path);
      expect([response.text, response.headers.get('access-control-allow-credentials')]).toEqual([
        '',
        null,
      ]);
      expect(listOf(response, 'vary')).toContain('origin');
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([
        204,
        ORIGIN,
      ]);
      expect(listOf(response, 'access-control-allow-methods')).toEqual(
        expect.arrayContaining(['get', 'post', 'patch', 'delete']),
      );
      expect(listOf(response, 'access-control-allow-headers')).toEqual(
        expect.arrayContaining([
          'authorization',
          'content-type',
          'idempotency-key',
          'x-request-id',
        ]),
      );
    }
  });

  it('HTTP-19 Scripts of a listed origin may read the headers that this document names', async () => {
    const own = await scripts.newStore();
    const response = await get('/api/v1/accounts', { origin: ORIGIN }, own);
    expect(listOf(response, 'access-control-expose-headers')).toEqual(
      expect.arrayContaining([
        'ratelimit-limit',
        'ratelimit-remaining',
        'ratelimit-reset',
        'ratelimit-policy',
        'retry-after',
        'link',
        'x-request-id',
        'idempotent-replayed',
        'x-dry-run',
        'deprecation',
        'sunset',
      ]),
    );
  });

  it('HTTP-24 Nothing but `/api` and `/mcp` has CORS headers, also with `CORS_ORIGINS=*`', async () => {
    for (const { newStore, anonymous } of [scripts, anyScripts]) {
      const { accountId } = await newStore();
      for (const path of [
        '/',
        '/app',
        '/app/sign-in',
        `/app/stores/${accountId}`,
        `/counter/${accountId}`,
        '/docs',
        '/openapi.json',
        '/health/live',
        '/join/nowhere',
        '/nowhere',
        '/apiary',
        '/mcp2',
      ]) {
        for (const response of [
          await get(path, { origin: ORIGIN }, anonymous),
          await preflight(anonymous, ORIGIN, path),
        ]) {
          expect([path, corsHeaderNamesOf(response)]).toEqual([path, []]);
        }
      }
      for (const path of ['/api/v1/status', '/api/v1/nothing', '/api/admin/v1/users', '/mcp']) {
        const { headers } = await get(path, { origin: ORIGIN }, anonymous);
        expect([path, headers.has('access-control-allow-origin')]).toEqual([path, true]);
      }
    }
  });

  it('HTTP-25 `CORS_ORIGINS` can list the origin of an app too, such as `capacitor://localhost`', async () => {
    const own = await scripts.newStore();
    const { status, headers } = await get('/api/v1/accounts', { origin: APP }, own);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, APP]);
    const allowed = await preflight(scripts.anonymous, APP);
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([
      204,
      APP,
    ]);
    for (const origin of [
      'capacitor://localhost:80',
      'ionic://localhost',
      'Capacitor://localhost',
    ]) {
      const refused = await get('/api/v1/accounts', { origin }, own);
      expect(refused.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('HTTP-23 A preflight succeeds even over the limit and after the sunset date', async () => {
    const sendRequest = () =>
      retired.anonymous.send('GET', '/api/v1/status', undefined, { origin: ORIGIN });
    const before = async () => (await preflight(retired.anonymous, ORIGIN)).status;
    for (let i = 0; i < 3; i++) expect(await before()).toBe(204);
    const limited = await sendRequest();
    expectFailure(limited, 429, 'rate_limited');
    const [status, gone] = await runAtTime(
      '2050-01-01T00:00:00Z',
      async () => [await before(), await sendRequest()] as const,
    );
    expect(status).toBe(204);
    expectFailure(gone, 410, 'version_sunset');
    for (const { headers } of [limited, gone]) {
      expect(headers.get('access-control-allow-origin')).toBe(ORIGIN);
    }
  });
});

describe('every response', () => {
  it('HTTP-20 Responses under `/api/v1` have `Cache-Control: no-store`', async () => {
    const preflightResponse = await preflight(scripts.anonymous, ORIGIN);
    const failed = (await failures({})).slice(0, -1);
    for (const { headers } of [await get(cards, {}), ...failed, preflightResponse]) {
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('HTTP-21 Responses have `X-Content-Type-Options: nosniff`', async () => {
    const outside = ['/docs', '/docs/errors', '/openapi.json', '/health/live'];
    const pages = await Promise.all(outside.map((path) => service.anonymous.get(path)));
    for (const { headers } of [await get(cards, {}), ...(await failures({})), ...pages]) {
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('HTTP-22 No header names the server software', async () => {
    for (const response of [await get(cards, {}), ...(await failures({}))]) {
      expect(response.headers.get('server')).toBeNull();
      expect(response.headers.get('x-powered-by')).toBeNull();
    }
  });
});
