import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken, LimitToken } from '#identity/token.commands.js';
import { runAtTime } from '../support/services/clock.js';
import { expectFailure, useService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { openSecondStore } from '../support/fixtures/second-store.js';
import { cli, type ApiResponse } from '../support/services/service.js';

// Behind a proxy, so that each test can come from an address of its own.
const few = useService({
  RATE_LIMIT_PER_MINUTE: '5',
  STORE_RATE_LIMIT_PER_MINUTE: '8',
  TRUST_PROXY_HOPS: '1',
  CORS_ORIGINS: 'https://till.example',
});
const unset = useService({ RATE_LIMIT_PER_MINUTE: '' });

const STATUS = '/api/v1/status';
const STORES = '/api/v1/accounts';
const NOON = Date.parse('2040-01-01T12:00:00Z');
const after = (seconds: number) => new Date(NOON + seconds * 1000).toISOString();

const PREFLIGHT = { origin: 'https://till.example', 'access-control-request-method': 'GET' };

let addresses = 0;

/** Somebody without a token, at an address that nobody else has. */
function newcomer() {
  const address = `192.0.2.${++addresses}`;
  return (path: string, authorization?: string) =>
    few.anonymous.send('GET', path, undefined, {
      'x-forwarded-for': address,
      ...(authorization !== undefined && { authorization }),
    });
}

const left = ({ headers }: ApiResponse) => Number(headers.get('ratelimit-remaining'));
const reset = ({ headers }: ApiResponse) => Number(headers.get('ratelimit-reset'));

async function times<T>(count: number, sendRequest: () => Promise<T>): Promise<T[]> {
  const responses: T[] = [];
  for (let i = 0; i < count; i++) responses.push(await sendRequest());
  return responses;
}

describe('limits', () => {
  it('LIMIT-01 Every response under `/api/v1` has the four `RateLimit` headers, whatever its status', async () => {
    const store = await unset.newStore();
    const cards = `${store.store}/cards`;
    const hook = { events: ['*'], target_url: 'https://example.com' };
    const hooks = `${store.store}/webhook_subscriptions`;
    const { body } = await store.post<{ id: number }>(hooks, hook);
    const text = { 'content-type': 'text/plain' };
    const responses = [
      await store.get(cards),
      await store.post(cards, { card: { name: 'Coffee' } }),
      await store.delete(`${hooks}/${body.id}`),
      await store.post(cards, '{'),
      await unset.anonymous.get(cards),
      await store.get(`${cards}/999999999`),
      await store.get('/api/v1/nothing'),
      await store.post(cards, 'x'.repeat(2_000_000)),
      await store.send('POST', cards, 'x', text),
      await store.post(cards, { card: {} }),
      await store.get('/api/v1/accounts/%E0%A4%A'),
      await store.send('PUT', '/api/v1/accounts'),
      await store.send('OPTIONS', cards),
      await few.anonymous.send('OPTIONS', STORES, undefined, PREFLIGHT),
    ];
    const statuses = responses.map(({ status }) => status);
    expect(statuses).toEqual([
      200, 201, 204, 400, 401, 404, 404, 413, 415, 422, 404, 405, 204, 204,
    ]);
    for (const { headers } of responses) {
      for (const name of ['limit', 'remaining', 'reset']) {
        expect(headers.get(`ratelimit-${name}`)).toMatch(/^\d+$/);
      }
      expect(headers.get('ratelimit-policy')).toMatch(/^\d+;w=60$/);
    }
  });

  it('LIMIT-02 By default 300 requests per minute are allowed', async () => {
    const { headers } = await (await unset.newStore()).get(STORES);
    expect(headers.get('ratelimit-limit')).toBe('300');
    expect(headers.get('ratelimit-policy')).toBe('300;w=60');
  });

  it('LIMIT-03 `RATE_LIMIT_PER_MINUTE` sets the limit, and `RateLimit-Policy` states it', async () => {
    const { headers } = await (await few.newStore()).get(STORES);
    expect(headers.get('ratelimit-limit')).toBe('5');
    expect(headers.get('ratelimit-policy')).toBe('5;w=60');
  });

  it('LIMIT-04 `RateLimit-Remaining` falls by one with each request', async () => {
    const store = await few.newStore();
    const responses = await times(6, () => store.get(STORES));
    expect(responses.map(left)).toEqual([4, 3, 2, 1, 0, 0]);
  });

  it('LIMIT-05 `RateLimit-Reset` counts down in seconds, from 60 to 1; it is not a timestamp', async () => {
    const store = await few.newStore();
    const requestedAt: number[] = [];
    for (const seconds of [0, 15, 30, 59.5]) {
      requestedAt.push(reset(await runAtTime(after(seconds), () => store.get(STORES))));
    }
    expect(requestedAt).toEqual([60, 45, 30, 1]);
  });

  it('LIMIT-06 One request too many is 429 `rate_limited`', async () => {
    const store = await few.newStore();
    const responses = await times(6, () => store.get(STORES));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
    for (const response of responses.slice(5)) expectFailure(response, 429, 'rate_limited');
  });

  it("LIMIT-07 A 429 has `Retry-After` in whole seconds, at least 1 and not beyond the window's end", async () => {
    const store = await few.newStore();
    await runAtTime(after(0), () => times(5, () => store.get(STORES)));
    for (const [seconds, wait] of [
      [0, '60'],
      [20, '40'],
      [59.9, '1'],
    ] as const) {
      const { status, headers } = await runAtTime(after(seconds), () => store.get(STORES));
      expect([status, headers.get('retry-after')]).toEqual([429, wait]);
      expect(headers.get('ratelimit-reset')).toBe(wait);
    }
  });

  it('LIMIT-08 A request over the limit is not executed', async () => {
    const store = await few.newStore();
    const createCard = () => store.post(`${store.store}/cards`, { card: { name: 'Coffee' } });
    const statuses = (await times(7, createCard)).map(({ status }) => status);
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429]);
    const cards = (await few.running.history()).filter(
      ({ type, meta }) => type === 'CardCreated' && meta.accountId === store.accountId,
    );
    expect(cards).toHaveLength(5);
  });

  it('LIMIT-09 Each token is counted separately, even two tokens of one user', async () => {
    const store = await few.newStore();
    const { token } = await few.running.execute(new CreateToken(cli, store.email, 'second'));
    await times(6, () => store.get(STORES));
    expect((await store.get(STORES)).status).toBe(429);
    expect(left(await store.as(token).get(STORES))).toBe(4);
    expect(left(await (await few.newStore()).get(STORES))).toBe(4);
  });

  it('LIMIT-10 Failed requests count towards the limit', async () => {
    const store = await few.newStore();
    const responses = [
      await store.get('/api/v1/nothing'),
      await store.post(`${store.store}/cards`, '{'),
      await store.post(`${store.store}/cards`, {}),
      await store.get('/api/v1/accounts/999999999'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([404, 400, 422, 404]);
    expect(responses.map(left)).toEqual([4, 3, 2, 1]);
  });

  it('LIMIT-11 Requests without a valid token are counted by IP address', async () => {
    const [one, two] = [newcomer(), newcomer()];
    const responses = [
      await one(STORES),
      await one(STORES, 'Bearer ink_wrong'),
      await one(STORES, 'Bearer ink_other'),
      await one(STATUS),
    ];
    expect(responses.map(left)).toEqual([4, 3, 2, 1]);
    expect(left(await two(STORES))).toBe(4);
  });

  it('LIMIT-12 The limit of an IP address is checked before the 401 of a request without a valid token', async () => {
    const sendRequest = newcomer();
    const statuses = (await times(7, () => sendRequest(STORES))).map(({ status }) => status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect((await sendRequest(STORES, 'Bearer ink_wrong')).status).toBe(429);
    const { token } = await few.newStore();
    expect((await sendRequest(STORES, `Bearer ${token}`)).status).toBe(200);
  });

  it("LIMIT-13 A token's limit is checked before the 404 of a store", async () => {
    const store = await few.newStore();
    const responses = await times(6, () => store.get('/api/v1/accounts/999999999/cards'));
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404, 429]);
  });

  it('LIMIT-14 Requests for the status are counted by IP address, or by token if a valid one is sent', async () => {
    const sendRequest = newcomer();
    const store = await few.newStore();
    expect(left(await sendRequest(STATUS))).toBe(4);
    expect(left(await sendRequest(STATUS, `Bearer ${store.token}`))).toBe(4);
    expect(left(await sendRequest(STATUS, `Bearer ${store.token}`))).toBe(3);
    expect(left(await sendRequest(STATUS))).toBe(3);
    expect(left(await store.get(STORES))).toBe(2);
  });

  it('LIMIT-15 `X-Forwarded-For` is trusted only for the configured number of proxies', async () => {
    const sendRequest = (client: typeof few, forwarded: string) =>
      client.anonymous.send('GET', STATUS, undefined, { 'x-forwarded-for': forwarded });
    expect(left(await sendRequest(few, '198.51.100.1'))).toBe(4);
    expect(left(await sendRequest(few, '203.0.113.7, 198.51.100.1'))).toBe(3);
    expect(left(await sendRequest(few, '203.0.113.8, 198.51.100.1'))).toBe(2);
    const before = left(await sendRequest(unset, '198.51.100.1'));
    expect(left(await sendRequest(unset, '198.51.100.2'))).toBe(before - 1);
  });

  it('LIMIT-16 A token may have its own limit, which the headers then show', async () => {
    const store = await few.newStore();
    const { tokenId, token } = await few.running.execute(new CreateToken(cli, store.email, 'busy'));
    await few.running.execute(new LimitToken(cli, tokenId, 7));
    const responses = await times(8, () => store.as(token).get(STORES));
    expect(responses[0]?.headers.get('ratelimit-limit')).toBe('7');
    expect(responses[0]?.headers.get('ratelimit-policy')).toBe('7;w=60');
    expect(responses.map(({ status }) => status)).toEqual([...Array(7).fill(200), 429]);
    expect((await store.get(STORES)).headers.get('ratelimit-limit')).toBe('5');
  });

  it('LIMIT-17 Requests over the limit do not extend the window', async () => {
    const store = await few.newStore();
    await runAtTime(after(0), () => times(6, () => store.get(STORES)));
    const refused = await runAtTime(after(50), () => times(10, () => store.get(STORES)));
    expect(refused.map((response) => [response.status, reset(response)])).toEqual(
      Array.from({ length: 10 }, () => [429, 10]),
    );
    expect((await runAtTime(after(61), () => store.get(STORES))).status).toBe(200);
  });

  it('LIMIT-18 When the window has ended, the full limit is available again', async () => {
    const store = await few.newStore();
    await runAtTime(after(0), () => times(6, () => store.get(STORES)));
    const next = await runAtTime(after(60.5), () => store.get(STORES));
    expect([next.status, left(next), reset(next)]).toEqual([200, 4, 60]);
  });

  it('LIMIT-19 There is no header that begins with `X-RateLimit`', async () => {
    const store = await few.newStore();
    for (const { headers } of await times(6, () => store.get(STORES))) {
      const names = [...headers.keys()].filter((name) => name.startsWith('x-ratelimit'));
      expect(names).toEqual([]);
    }
  });

  it('LIMIT-20 A preflight is counted by address, since it never has a token', async () => {
    const address = { 'x-forwarded-for': '192.0.2.250' };
    const sendRequest = (path: string) =>
      few.anonymous.send('OPTIONS', path, undefined, { ...PREFLIGHT, ...address });
    const responses = [
      await sendRequest(STATUS),
      await sendRequest(STORES),
      await sendRequest('/api/v1/nothing'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([204, 204, 204]);
    expect(responses.map(left)).toEqual([4, 3, 2]);
    const next = await few.anonymous.send('GET', STATUS, undefined, address);
    expect(left(next)).toBe(1);
  });

  /** The same store, by tokens of one user that have requests of their own left. */
  async function tokensOf({ email }: { email: string }, count: number): Promise<string[]> {
    const tokens: string[] = [];
    for (let i = 0; i < count; i++) {
      tokens.push((await few.running.execute(new CreateToken(cli, email, `till ${i}`))).token);
    }
    return tokens;
  }

  it('LIMIT-21 Requests for one store, `/api/v1/accounts/:account_id` and below, are limited together as well, whatever their token', async () => {
    const store = await few.newStore();
    const [one = '', other = ''] = await tokensOf(store, 2);
    const path = `${store.store}/cards`;
    const statuses = [
      ...(await times(5, () => store.as(one).get(path))),
      ...(await times(4, () => store.as(other).get(path))),
    ].map(({ status }) => status);
    expect(statuses).toEqual([...Array(8).fill(200), 429]);
    // Requests that name no store go on.
    expect((await store.as(other).get(STORES)).status).toBe(200);
  });

  it('LIMIT-22 One request too many for a store is 429 as ever', async () => {
    const store = await few.newStore();
    const [one = '', other = ''] = await tokensOf(store, 2);
    const sendRequest = (token: string) => store.as(token).get(store.store);
    await runAtTime(after(0), () => times(5, () => sendRequest(one)));
    await runAtTime(after(10), () => times(3, () => sendRequest(other)));
    const refused = await runAtTime(after(20), () => sendRequest(other));
    expectFailure(refused, 429, 'rate_limited');
    const rateLimitHeaders = ['limit', 'remaining', 'reset', 'policy'].map((name) =>
      refused.headers.get(`ratelimit-${name}`),
    );
    expect(rateLimitHeaders).toEqual(['8', '0', '40', '8;w=60']);
    expect(refused.headers.get('retry-after')).toBe('40');
    const next = await runAtTime(after(60.5), () => sendRequest(other));
    expect([next.status, next.headers.get('ratelimit-limit')]).toEqual([200, '5']);
  });

  it("LIMIT-23 A request that a token's own limit refuses does not count for the store, nor one that the store's limit refuses for the token", async () => {
    const store = await few.newStore();
    const [one = '', other = ''] = await tokensOf(store, 2);
    await times(20, () => store.as(one).get(store.store));
    const responses = await times(4, () => store.as(other).get(store.store));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  });

  it('LIMIT-24 A request that is refused with 401 or, to a user of other stores, with 404 does not count for the store', async () => {
    const store = await few.newStore();
    const stranger = await few.newStore();
    for (const token of await tokensOf(stranger, 3)) {
      const responses = await times(4, () => stranger.as(token).get(store.store));
      expect(responses.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    }
    await times(4, () => few.anonymous.get(store.store));
    const [one = '', other = ''] = await tokensOf(store, 2);
    const responses = [
      ...(await times(5, () => store.as(one).get(store.store))),
      ...(await times(3, () => store.as(other).get(store.store))),
    ];
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

  it('LIMIT-25 The limit of one store has no effect on another, also with the same token', async () => {
    const [store, second] = [await few.newStore(), await few.newStore()];
    await few.running.execute(new AddMember(cli, second.accountId, store.email, 'owner'));
    const [one = '', other = ''] = await tokensOf(store, 2);
    await times(5, () => store.as(one).get(store.store));
    const responses = await times(4, () => store.as(other).get(store.store));
    expect(responses.at(-1)?.status).toBe(429);
    expect((await store.as(other).get(second.store)).status).toBe(200);
    expect((await second.get(second.store)).status).toBe(200);
  });

  it('LIMIT-26 A request that is refused with 403 counts for the store', async () => {
    const store = await few.newStore();
    const staff = await few.newStore();
    await few.running.execute(new AddMember(cli, store.accountId, staff.email, 'staff'));
    const hooks = `${store.store}/webhook_subscriptions`;
    const responses = await times(5, () => staff.get(hooks));
    expect(responses.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    const left = await times(4, () => store.get(store.store));
    expect(left.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  });

  it('LIMIT-28 Stores that share quotas are limited together as well, to twice as many requests as one store', async () => {
    const store = await few.newStore();
    const paths = [store.store];
    for (let i = 0; i < 2; i++) {
      paths.push(`/api/v1/accounts/${await openSecondStore(few.running, store)}`);
    }
    const tokens = await tokensOf(store, 6);
    const statuses: number[] = [];
    for (const path of paths) {
      // Four of each of two tokens: the limit of a store.
      for (const token of tokens.splice(0, 2)) {
        const responses = await times(4, () => store.as(token).get(path));
        statuses.push(...responses.map(({ status }) => status));
      }
    }
    expect(statuses).toEqual([...Array(16).fill(200), ...Array(8).fill(429)]);
    const other = await few.newStore();
    expect((await other.get(other.store)).status).toBe(200);
  });

  it('LIMIT-27 Statistics, searches, history and exports of one store are read one after another', async () => {
    const [store, otherStore] = [await unset.newStore(), await unset.newStore()];
    const read = () => store.get(`${store.store}/statistics`);
    const holder = new pg.Client(unset.running.database.ownerUrl);
    await holder.connect();
    await holder.query('begin');
    await holder.query('lock table statistics_hours in access exclusive mode');
    try {
      const responses = Array.from({ length: 20 }, read);
      const waiting = await Promise.race(responses);
      expectFailure(waiting, 503, 'unavailable');
      expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThan(0);
      // None of them holds what other stores, or other requests of the store, need.
      expect((await otherStore.get(`${otherStore.store}/customers?search=anna`)).status).toBe(200);
      expect((await store.get(`${store.store}/cards`)).status).toBe(200);
      await holder.query('rollback');
      await Promise.all(responses);
    } finally {
      await holder.end();
    }
    // On a busy machine the last ones may wait for too long.
    await eventually(
      async () => (await Promise.all(Array.from({ length: 20 }, read))).map(({ status }) => status),
      (statuses) => statuses.every((status) => status === 200),
    );
  });
});
