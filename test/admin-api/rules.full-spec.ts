import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { CreateAdminToken, RevokeAdminToken } from '#web/admin-api/admin-token.commands.js';
import type { AuditEntryJson } from '#loyalty/history/audit-entry.dto.js';
import { CreateUser } from '#identity/identity.commands.js';
import { Browser } from '../support/browser/browser.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type Failure,
} from '../support/http/contract.js';
import { createResponseChecker } from '../support/http/openapi.js';
import { listOperations, type OpenApiFile } from '../support/http/openapi-file.js';
import { eventually } from '../support/jest/eventually.js';
import { startSecondApi } from '../support/services/second-api.js';
import { cli, Client, startService, type ApiResponse } from '../support/services/service.js';

const API = '/api/admin/v1';
const PASSWORD = 'seven tall oaks';
/** Of every response. */
const USUAL_HEADERS = [
  ['ratelimit-limit', /^\d+$/],
  ['cache-control', /^no-store$/],
] as const;

// Links for passwords need a mail server; what is sent stays in the database.
const service = useService({
  MAIL_FROM: 'inkpad@shop.example',
  SMTP_URL: 'smtp://127.0.0.1:9',
  TRUST_PROXY_HOPS: '1',
});

/** Checks each response against the document of the admin API. */
class AdminClient extends Client {
  constructor(
    baseUrl: string,
    token: string | null,
    private readonly check: ReturnType<typeof createResponseChecker>,
  ) {
    super(baseUrl, 0, token);
  }

  override async send<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse<T>> {
    const response = await super.send<T>(method, `${API}${path}`, body, headers);
    const problems = this.check({ method, path: `${API}${path}`, ...response });
    for (const [name, pattern] of USUAL_HEADERS) {
      const value = response.headers.get(name);
      if (!pattern.test(value ?? '')) problems.push(`${name}: ${value}`);
    }
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return response;
  }

  as(token: string | null): AdminClient {
    return new AdminClient(this.baseUrl, token, this.check);
  }
}

type Created = { id: number };
type User = Created & { email: string; password: string | null };
type Token = Created & { token: string };

let document: OpenApiFile;
let admin: AdminClient;

beforeAll(async () => {
  const { baseUrl } = service.running;
  document = (await new Client(baseUrl, 0, null).get<OpenApiFile>(`${API}/openapi.json`)).body;
  const { token } = await createAdminToken();
  admin = new AdminClient(baseUrl, token, createResponseChecker(document));
});

function createAdminToken(expiresAt: Date | null = null, isReadOnly = false) {
  const command = new CreateAdminToken(cli, 'provisioning', expiresAt, isReadOnly);
  return service.running.execute(command);
}

const newAddress = () => `${randomUUID()}@shop.example`;

async function newUser(): Promise<User> {
  const { body } = await admin.post<User>('/users', {
    email: newAddress(),
    name: 'Grace Hopper',
    password: PASSWORD,
  });
  return body;
}

async function newStore(ownerId: number, name = 'Corner Café'): Promise<Created> {
  return (await admin.post<Created>('/accounts', { name, owner_id: ownerId })).body;
}

async function newToken(userId: number, more: object = {}): Promise<Token> {
  return (await admin.post<Token>('/tokens', { user_id: userId, name: 'till', ...more })).body;
}

const ids = ({ body }: ApiResponse<Created[]>) => body.map(({ id }) => id);

/** Reads every page of a list. */
async function readPages(path: string): Promise<number[]> {
  const page = await admin.get<Created[]>(path);
  const next = /<[^>]*?([?][^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1];
  if (next === undefined) return ids(page);
  return [...ids(page), ...(await readPages(`${path.split('?')[0]}${next}`))];
}

async function expectSignIn(email: string, password: string, isRight = true): Promise<Browser> {
  const browser = new Browser(service.running);
  expect((await browser.signIn(email, password)).status).toBe(isRight ? 303 : 422);
  return browser;
}

const reads = async (token: string, path = '/api/v1/token') =>
  (await new Client(service.running.baseUrl, 0, token).get(path)).status;

/** Sends each operation, with ids that exist for none of them. */
async function sendAll(
  client: AdminClient,
): Promise<{ name: string; method: string; status: number }[]> {
  const results = [];
  for (const { name, method, path } of listOperations(document)) {
    const place = path.replace(API, '').replaceAll(/\{\w+\}/g, '999999999');
    const { status } = await client.send(
      method,
      place,
      ['GET', 'DELETE'].includes(method) ? undefined : {},
    );
    results.push({ name, method, status });
  }
  return results;
}

describe('access to the admin API', () => {
  it('ADMIN-01 A token of the admin API begins with `inkadm_`, and only its hash is stored', async () => {
    const { token } = await createAdminToken();
    expect(token).toMatch(/^inkadm_[A-Za-z0-9_-]{59}$/);
    const { rows } = await service.running.database.query<{ text: string }>(
      'select to_jsonb(a)::text as text from admin_tokens a',
    );
    expect(rows.length).toBeGreaterThan(1);
    expect(rows.filter(({ text }) => text.includes(token.slice(7, 30)))).toEqual([]);
  });

  it('ADMIN-02 While no token of the admin API is in force, every path but its document (ADMIN-13) is 404, whatever token a request has', async () => {
    const otherService = await startService();
    try {
      const { tokenId, token } = await otherService.execute(new CreateAdminToken(cli, 'ended'));
      const stranger = new Client(otherService.baseUrl, 0, null);
      expectFailure(await stranger.get(`${API}/users`), 401, 'unauthorized');
      await otherService.execute(new RevokeAdminToken(cli, tokenId));
      const store = await otherService.newStore();
      for (const client of [stranger, store, new Client(otherService.baseUrl, 0, token)]) {
        for (const path of [`${API}/users`, `${API}/nothing`, API]) {
          expectFailure(await client.get(path), 404, 'not_found');
        }
        expectFailure(await client.post(`${API}/users`, {}), 404, 'not_found');
      }
    } finally {
      await otherService.stop();
    }
  });

  it('ADMIN-03 While a token of the admin API is in force, a request without one is 401 `unauthorized`, also for a path that does not exist', async () => {
    for (const token of [null, 'x', `inkadm_${'A'.repeat(59)}`]) {
      for (const path of ['/users', '/nothing']) {
        expectFailure(await admin.as(token).get(path), 401, 'unauthorized');
      }
    }
  });

  it('ADMIN-04 A token of a user is 401 in the admin API, and a token of the admin API is 401 in the API', async () => {
    const store = await service.newStore();
    expectFailure(await admin.as(store.token).get('/users'), 401, 'unauthorized');
    expectFailure(await store.as(admin.token).get('/api/v1/accounts'), 401, 'unauthorized');
    expectFailure(await store.as(admin.token).get(store.store), 401, 'unauthorized');
  });

  it('ADMIN-05 A revoked token of the admin API stops at once in every process', async () => {
    const store = await service.newStore();
    const { program, second } = await startSecondApi(service.running, store);
    try {
      const { tokenId, token } = await createAdminToken();
      const clients = [service.running.baseUrl, second.baseUrl].map(
        (url) => new Client(url, 0, token),
      );
      const statuses = () =>
        Promise.all(
          clients.map(async (client) => (await client.get(`${API}/users?limit=1`)).status),
        );
      expect(await statuses()).toEqual([200, 200]);
      await service.running.execute(new RevokeAdminToken(cli, tokenId));
      expect(await statuses()).toEqual([401, 401]);
    } finally {
      await program.kill('SIGKILL');
    }
  });

  it('ADMIN-06 A read-only token is 403 `forbidden` for every operation that is not a `GET`', async () => {
    const { token } = await createAdminToken(null, true);
    const reader = admin.as(token);
    expect((await reader.get('/users?limit=1')).status).toBe(200);
    const refused = await reader.post<Failure>('/users', '{');
    expectFailure(refused, 403, 'forbidden');
    expect(refused.body.error).toBe('This token may only read');
    expectFailure(await reader.post('/nothing', {}), 404, 'not_found');
  });

  it('ADMIN-07 With `ADMIN_API_ALLOWED_CIDRS`, callers from other addresses get 404, also with a token; the document stays open', async () => {
    const otherService = await startService({
      ADMIN_API_ALLOWED_CIDRS: '10.1.0.0/16,fd12::/48',
      TRUST_PROXY_HOPS: '1',
    });
    try {
      const { token } = await otherService.execute(new CreateAdminToken(cli, 'inside'));
      const from = async (address: string, path = '/users') =>
        (
          await new Client(otherService.baseUrl, 0, token).send('GET', `${API}${path}`, undefined, {
            'x-forwarded-for': address,
          })
        ).status;
      expect([
        await from('10.1.2.3'),
        await from('::ffff:10.1.2.3'),
        await from('fd12::1'),
      ]).toEqual([200, 200, 200]);
      expect([await from('10.2.0.1'), await from('fd13::1'), await from('nobody')]).toEqual([
        404, 404, 404,
      ]);
      expect(await from('10.2.0.1', '/openapi.json')).toBe(200);
    } finally {
      await otherService.stop();
    }
  });

  it('ADMIN-08 Each token has `RATE_LIMIT_PER_MINUTE` requests, which count against no other limit', async () => {
    const otherService = await startService({
      PAGE_RATE_LIMIT_PER_MINUTE: '1',
      RATE_LIMIT_PER_MINUTE: '3',
      TRUST_PROXY_HOPS: '1',
    });
    try {
      const clients = [];
      for (const name of ['one', 'two']) {
        const { token } = await otherService.execute(new CreateAdminToken(cli, name));
        clients.push(new Client(otherService.baseUrl, 0, token));
      }
      for (const client of [...clients, new Client(otherService.baseUrl, 0, null)]) {
        const responses = [];
        for (let i = 0; i < 4; i++) responses.push(await client.get(`${API}/users`));
        const expected = client.token === null ? 401 : 200;
        expect(responses.map(({ status }) => status)).toEqual([expected, expected, expected, 429]);
        const [first, , , last] = responses;
        expect(first?.headers.get('ratelimit-policy')).toBe('3;w=60');
        expect(last?.headers.get('retry-after')).toMatch(/^[1-9]\d?$/);
      }
      // Another address without a token has requests left, and so has the API.
      const elsewhere = { 'x-forwarded-for': '192.0.2.9' };
      const stranger = new Client(otherService.baseUrl, 0, null);
      expect((await stranger.send('GET', `${API}/users`, undefined, elsewhere)).status).toBe(401);
      expect((await stranger.get('/api/v1/status')).status).toBe(200);
      expect((await stranger.get('/docs')).status).toBe(200);
    } finally {
      await otherService.stop();
    }
  });

  it('ADMIN-09 Every operation is 401 without a token, with that of a user, and with a revoked or expired one; a read-only one may call those that read, and no other', async () => {
    const store = await service.newStore();
    const revoked = await createAdminToken();
    await service.running.execute(new RevokeAdminToken(cli, revoked.tokenId));
    const expired = await createAdminToken(new Date(Date.now() + 3_600_000));
    await service.running.database.query(
      'update admin_tokens set expires_at = now() where id = $1',
      [expired.tokenId],
    );
    await eventually(
      () => reads(expired.token, `${API}/users?limit=1`),
      (status) => status === 401,
    );
    expect(listOperations(document).length).toBeGreaterThan(20);
    for (const token of [null, store.token, revoked.token, expired.token]) {
      const open = (await sendAll(admin.as(token))).filter(({ status }) => status !== 401);
      expect(open).toEqual([]);
    }
    const reader = await sendAll(admin.as((await createAdminToken(null, true)).token));
    for (const { name, method, status } of reader) {
      expect([name, status === 403]).toEqual([name, method !== 'GET']);
    }
    const writer = await sendAll(admin);
    expect(writer.filter(({ status }) => [401, 403, 500].includes(status))).toEqual([]);
  });

  it('ADMIN-10 Failures have the body and the codes of the API', async () => {
    expectFailure(await admin.get('/nothing'), 404, 'not_found');
    const wrongMethod = await admin.send('PUT', '/users', {});
    expectFailure(wrongMethod, 405, 'method_not_allowed');
    expect(wrongMethod.headers.get('allow')).toBe('GET, HEAD, OPTIONS, POST');
    const json = { 'content-type': 'application/json' };
    expectFailure(
      await admin.send('POST', '/users', Buffer.from('{'), json),
      400,
      'malformed_json',
    );
    const large = Buffer.from(JSON.stringify({ name: 'x'.repeat(1024 * 1024) }));
    expectFailure(await admin.send('POST', '/users', large, json), 413, 'payload_too_large');
    expectRefused(
      await admin.send('POST', '/users', { nmae: 'Grace' }, { prefer: 'handling=strict' }),
      ['email', 'name', 'nmae'],
    );
    expectRefused(await admin.post('/users', { email: 7, name: ['x'], password: {} }), [
      'email',
      'name',
      'password',
    ]);
    expectRefused(await admin.get('/users?limit=0&cursor=x&account_id=-1'), [
      'account_id',
      'limit',
    ]);
    for (const id of ['0', 'x', '99999999999999999999', '%00']) {
      expectFailure(await admin.get(`/users/${id}`), 404, 'not_found');
    }
  });

  it('ADMIN-11 A request repeated with its `Idempotency-Key` gets the same response, also the secret in it, and changes nothing', async () => {
    const email = newAddress();
    const keyed = (path: string, body: object, client = admin, method = 'POST') =>
      client.send<Token & User>(method, path, body, { 'idempotency-key': 'shop-4711' });
    const user = await keyed('/users', { email, name: 'Grace' });
    expect([user.status, user.body.password]).toEqual([201, expect.stringMatching(/^.{16}$/)]);
    const again = await keyed('/users', { email, name: 'Grace' });
    expect([again.status, again.body]).toEqual([201, user.body]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');

    const store = await keyed('/accounts', { name: 'One', owner_id: user.body.id });
    expect((await keyed('/accounts', { name: 'One', owner_id: user.body.id })).body).toEqual(
      store.body,
    );
    expect(ids(await admin.get(`/accounts?user_id=${user.body.id}`))).toEqual([store.body.id]);

    const body = { user_id: user.body.id, name: 'till' };
    const [first, second] = await Promise.all([keyed('/tokens', body), keyed('/tokens', body)]);
    const token = [first, second].find(({ status }) => status === 201);
    // The other one came while it was in progress, or got the same.
    expect([409, 201]).toContain(first?.status);
    expect((await keyed('/tokens', body)).body).toEqual(token?.body);
    expect(ids(await admin.get(`/tokens?user_id=${user.body.id}`))).toEqual([token?.body.id]);

    const path = `/tokens/${token?.body.id}`;
    expect((await keyed(path, { per_minute: 7 }, admin, 'PATCH')).status).toBe(200);
    const removal = { 'idempotency-key': 'gone' };
    expect((await admin.send('DELETE', path, undefined, removal)).status).toBe(204);
    const repeated = await admin.send('DELETE', path, undefined, removal);
    expect([repeated.status, repeated.text]).toEqual([204, '']);
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');

    expectRefused(
      await keyed('/users', { email, name: 'Kim' }),
      'idempotency_key',
      'idempotency_key_reused',
    );
    const { token: otherToken } = await createAdminToken();
    expectRefused(await keyed('/users', { email, name: 'Kim' }, admin.as(otherToken)), 'email');
  });

  it("ADMIN-12 The audit log has each change with the channel `admin`, and an actor of the type `admin_token` with the token's name", async () => {
    const owner = await newUser();
    const store = await newStore(owner.id);
    const { token } = await newToken(owner.id);
    await admin.send('PATCH', `/accounts/${store.id}`, { name: 'Renamed' });
    const reader = new Client(service.running.baseUrl, store.id, token);
    const { body: entries } = await reader.get<AuditEntryJson[]>(`${reader.store}/audit`);
    expect(entries.map(({ type, channel, actor }) => ({ type, channel, actor }))).toEqual(
      ['token.created', 'member.added'].map((type) => ({
        type,
        channel: 'admin',
        actor: { type: 'admin_token', id: expect.any(Number), name: 'provisioning' },
      })),
    );
    const actor = entries[0]?.actor;
    const filtered = await reader.get<object[]>(
      `${reader.store}/audit?actor=admin_token:${actor?.id}`,
    );
    expect(filtered.body).toHaveLength(2);
    const { body: history } = await eventually(
      () =>
        reader.get<{ type: string; channel: string; actor: object }[]>(`${reader.store}/history`),
      ({ body }) => body.length === 2,
    );
    expect(history.map((entry) => [entry.type, entry.channel, entry.actor])).toEqual([
      ['account.updated', 'admin', actor],
      ['account.created', 'admin', actor],
    ]);
    const browser = new Browser(service.running);
    await browser.signIn(owner.email, PASSWORD);
    const { text } = await browser.get(`/app/stores/${store.id}/audit`);
    expect(text).toContain('The operator of this service (provisioning)');
  });

  it('ADMIN-13 `/api/admin/v1/openapi.json` describes the operations, and is the only path that needs no token', async () => {
    expect(document.openapi).toBe('3.1.0');
    const paths = Object.keys(document.paths);
    expect(paths.filter((path) => !path.startsWith(`${API}/`))).toEqual([]);
    const api = await new Client(service.running.baseUrl, 0, null).get<OpenApiFile>(
      '/openapi.json',
    );
    expect(Object.keys(api.body.paths).filter((path) => path.startsWith(API))).toEqual([]);
    const page = await new Client(service.running.baseUrl, 0, null).get('/docs/admin-reference');
    expect(page.status).toBe(200);
    for (const { operation } of listOperations(document)) {
      expect(page.text).toContain(operation.summary);
    }
  });
});

describe('provisioned stores', () => {
  it('ADMIN-20 `POST /api/admin/v1/accounts` creates a store and makes the user `owner_id` its owner in the same step', async () => {
    const owner = await newUser();
    const { status, body } = await admin.post<Created>('/accounts', {
      name: 'Corner Café',
      store_name: 'Corner',
      owner_id: owner.id,
      personal: true,
      time_zone: 'Europe/Berlin',
      locale: 'de-AT',
    });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        name: 'Corner Café',
        store_name: 'Corner',
        personal: true,
        time_zone: 'Europe/Berlin',
        locale: 'de-AT',
        country: 'AT',
      }),
    ]);
    expect((await admin.get(`/accounts/${body.id}/members`)).body).toEqual([
      {
        user_id: owner.id,
        role: 'owner',
        name: 'Grace Hopper',
        email: owner.email,
        email_confirmed: false,
      },
    ]);
    const { token } = await newToken(owner.id);
    expect(await reads(token, `/api/v1/accounts/${body.id}`)).toBe(200);
  });

  it('ADMIN-21 A blank `name`, an `owner_id` that is no user, and an unknown `time_zone`, `locale` or `country` are 422 by field, and no store is created', async () => {
    const owner = await newUser();
    const before = await readPages('/accounts?limit=250');
    expectRefused(
      await admin.post('/accounts', {
        name: ' ',
        owner_id: 'x',
        time_zone: 'Mars',
        locale: '?',
        country: 'Narnia',
      }),
      ['country', 'locale', 'name', 'owner_id', 'time_zone'],
    );
    expectRefused(await admin.post('/accounts', {}), ['name', 'owner_id']);
    expectRefused(await admin.post('/accounts', { name: 'x', owner_id: 999_999_999 }), 'owner_id');
    await admin.send('DELETE', `/users/${owner.id}`);
    expectRefused(await admin.post('/accounts', { name: 'x', owner_id: owner.id }), 'owner_id');
    expect(await readPages('/accounts?limit=250')).toEqual(before);
  });

  it('ADMIN-22 The list of stores has every one of the service by id, in pages with `limit` (100 by default), `cursor` and `Link`; `user_id` filters it', async () => {
    const owner = await newUser();
    const stores = [await newStore(owner.id), await newStore(owner.id), await newStore(owner.id)];
    const own = stores.map(({ id }) => id);
    expect(await readPages(`/accounts?user_id=${owner.id}&limit=2`)).toEqual(own);
    const all = await readPages('/accounts?limit=2');
    expect(all).toEqual([...new Set(all)].sort((a, b) => a - b));
    expect(all).toEqual(expect.arrayContaining(own));
    expect(ids(await admin.get('/accounts?user_id=999999999'))).toEqual([]);
    expectRefused(await admin.get('/accounts?cursor=x'), 'cursor');
  });

  it('ADMIN-23 `PATCH /api/admin/v1/accounts/:account_id` changes the fields that it has, and no others', async () => {
    const { id } = await newStore((await newUser()).id);
    const { body: before } = await admin.get<object>(`/accounts/${id}`);
    const changes = { store_name: 'Corner', country: 'DE' };
    const { status, body } = await admin.send<object>('PATCH', `/accounts/${id}`, changes);
    const expected = {
      ...before,
      ...changes,
      display_store_name: 'Corner',
      // It has a country now.
      warnings: [],
      updated_at: expect.any(String),
    };
    expect([status, body]).toEqual([200, expected]);
    expect((await admin.get(`/accounts/${id}`)).body).toEqual(body);
    expectRefused(await admin.send('PATCH', `/accounts/${id}`, { time_zone: 'Mars' }), 'time_zone');
    expectFailure(await admin.send('PATCH', '/accounts/999999999', changes), 404, 'not_found');
    expectFailure(await admin.get('/accounts/999999999'), 404, 'not_found');
  });
});

describe('members', () => {
  it('ADMIN-30 `POST …/members` adds a user with a role, which `PATCH` changes and `DELETE` takes away, also from the last owner', async () => {
    const [owner, user] = [await newUser(), await newUser()];
    const { id } = await newStore(owner.id);
    const { token } = await newToken(user.id);
    const path = `/api/v1/accounts/${id}`;
    expect(await reads(token, path)).toBe(404);
    const added = await admin.post(`/accounts/${id}/members`, { user_id: user.id, role: 'staff' });
    expect([added.status, added.body]).toEqual([201, { user_id: user.id, role: 'staff' }]);
    await eventually(
      () => reads(token, path),
      (status) => status === 200,
    );
    expect(await reads(token, `${path}/audit`)).toBe(403);
    const member = `/accounts/${id}/members/${user.id}`;
    expect((await admin.send('PATCH', member, { role: 'owner' })).status).toBe(200);
    await eventually(
      () => reads(token, `${path}/audit`),
      (status) => status === 200,
    );
    for (const member of [owner, user]) {
      expect((await admin.send('DELETE', `/accounts/${id}/members/${member.id}`)).status).toBe(204);
    }
    await eventually(
      () => reads(token, path),
      (status) => status === 404,
    );
    expect((await admin.get(`/accounts/${id}/members`)).body).toEqual([]);
  });

  it('ADMIN-31 A user who is a member with another role already is 422; a store, user or member that does not exist is 404', async () => {
    const [owner, stranger] = [await newUser(), await newUser()];
    const { id } = await newStore(owner.id);
    const add = (store: number, user: number, role = 'staff') =>
      admin.post(`/accounts/${store}/members`, { user_id: user, role });
    expectRefused(await add(id, owner.id), 'base');
    expect((await add(id, owner.id, 'owner')).status).toBe(201);
    expectRefused(await add(id, stranger.id, 'king'), 'role');
    expectFailure(await add(999_999_999, stranger.id), 404, 'not_found');
    expectFailure(await add(id, 999_999_999), 404, 'not_found');
    for (const user of [stranger.id, 999_999_999]) {
      const member = `/accounts/${id}/members/${user}`;
      expectFailure(await admin.send('PATCH', member, { role: 'staff' }), 404, 'not_found');
      expectFailure(await admin.send('DELETE', member), 404, 'not_found');
    }
    expectFailure(await admin.get('/accounts/999999999/members'), 404, 'not_found');
  });

  type Invitation = Created & { url: string };

  it('ADMIN-32 `POST …/invitations` returns a link that lets the person join, until it is used, withdrawn or a week old', async () => {
    const { id } = await newStore((await newUser()).id);
    const path = `/accounts/${id}/invitations`;
    const email = newAddress();
    const { status, body } = await admin.post<Invitation>(path, { email, role: 'manager' });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ email, role: 'manager', expires_in_days: 7 }),
    ]);
    expect(body.url).toMatch(/^https:\/\/cards[.]example\/app\/invitations\/[\w-]{43}$/);
    expect((await admin.get<object[]>(path)).body).toEqual([
      { id: body.id, email, role: 'manager', expires_at: expect.any(String) },
    ]);
    const browser = new Browser(service.running);
    const link = new URL(body.url).pathname;
    expect((await browser.get(link)).status).toBe(200);
    expect((await browser.post(link, { name: 'Kim', password: PASSWORD })).status).toBe(303);
    const { body: members } = await admin.get<{ email: string; role: string }[]>(
      `/accounts/${id}/members`,
    );
    expect(members.find((member) => member.email === email)?.role).toBe('manager');
    expect((await admin.get<object[]>(path)).body).toEqual([]);

    const second = await admin.post<Invitation>(path, { email: newAddress(), role: 'staff' });
    expect((await admin.send('DELETE', `${path}/${second.body.id}`)).status).toBe(204);
    expect((await new Browser(service.running).get(new URL(second.body.url).pathname)).status).toBe(
      404,
    );
    expectFailure(await admin.send('DELETE', `${path}/999999999`), 404, 'not_found');
    expectRefused(await admin.post(path, { email, role: 'staff' }), 'email');
    expectRefused(await admin.post(path, { email: 'nobody', role: 'staff' }), 'email');
    expectFailure(
      await admin.post('/accounts/999999999/invitations', { email, role: 'staff' }),
      404,
      'not_found',
    );
  });

  it("ADMIN-33 An invitation is in the name of the store's first owner; without an owner it is 422", async () => {
    const owner = await newUser();
    const { id } = await newStore(owner.id);
    const invite = () =>
      admin.post<Invitation>(`/accounts/${id}/invitations`, { email: newAddress(), role: 'staff' });
    const { body } = await invite();
    const page = await new Browser(service.running).get(new URL(body.url).pathname);
    expect(page.text).toContain('Grace Hopper');
    await admin.send('DELETE', `/accounts/${id}/members/${owner.id}`);
    expectRefused(await invite(), 'base');
  });
});

describe('users', () => {
  it('ADMIN-40 `POST /api/admin/v1/users` creates a user who can sign in; without a `password` one is generated and returned once', async () => {
    const email = newAddress();
    const { status, body } = await admin.post<User>('/users', { email, name: ' Grace ' });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        email,
        name: 'Grace',
        stores: [],
        tokens_count: 0,
        removed_at: null,
      }),
    ]);
    const browser = await expectSignIn(email, String(body.password));
    expect((await browser.get('/app')).location).toBe('/app/account/first-password');
    const { password, ...user } = body;
    expect((await admin.get(`/users/${body.id}`)).body).toEqual(user);
    const otherUser = await newUser();
    expect([typeof password, otherUser.password]).toEqual(['string', null]);
    const own = await expectSignIn(otherUser.email, PASSWORD);
    expect((await own.get('/app')).status).toBe(200);
  });

  it('ADMIN-41 An address that another user has, one that is none, and a password that is easy to guess are 422 by field', async () => {
    const { email } = await newUser();
    const create = (more: object) =>
      admin.post('/users', { email: newAddress(), name: 'Kim', password: PASSWORD, ...more });
    expectRefused(await create({ email: email.toUpperCase() }), 'email');
    expectRefused(await create({ email: 'nobody' }), 'email');
    for (const password of ['short', '1234567890', 'x'.repeat(1_001), 7]) {
      expectRefused(await create({ password }), 'password');
    }
    expectRefused(await create({ name: 'x'.repeat(256) }), 'name');
  });

  it('ADMIN-42 The list of users has every one by id, in pages with `limit`, `cursor` and `Link`', async () => {
    const [owner, staff, otherUser] = [await newUser(), await newUser(), await newUser()];
    const { id } = await newStore(owner.id);
    await admin.post(`/accounts/${id}/members`, { user_id: staff.id, role: 'staff' });
    expect(await readPages(`/users?account_id=${id}&limit=1`)).toEqual([owner.id, staff.id]);
    const all = await readPages('/users?limit=2');
    expect(all).toEqual([...all].sort((a, b) => a - b));
    expect(all).toEqual(expect.arrayContaining([owner.id, staff.id, otherUser.id]));
    const address = encodeURIComponent(otherUser.email.toUpperCase());
    expect(ids(await admin.get(`/users?email=${address}`))).toEqual([otherUser.id]);
    expect(ids(await admin.get('/users?email=nobody'))).toEqual([]);
    await admin.send('DELETE', `/users/${otherUser.id}`);
    expect(await readPages('/users?limit=50')).not.toContain(otherUser.id);
    expect(await readPages('/users?limit=50&include_removed=true')).toContain(otherUser.id);
    const { body } = await admin.get<{ stores: object[] }[]>(`/users?account_id=${id}&limit=1`);
    expect(body[0]?.stores).toEqual([{ account_id: id, role: 'owner' }]);
  });

  it('ADMIN-43 `PATCH /api/admin/v1/users/:user_id` changes name and address; a new address ends all sessions', async () => {
    const user = await newUser();
    const browser = new Browser(service.running);
    await browser.signIn(user.email, PASSWORD);
    const path = `/users/${user.id}`;
    const renamed = await admin.send('PATCH', path, { name: 'Kim' });
    expect(renamed.body).toMatchObject({ name: 'Kim', email: user.email });
    expect((await browser.get('/app')).status).toBe(200);
    const email = newAddress();
    expect((await admin.send('PATCH', path, { email })).body).toMatchObject({ name: 'Kim', email });
    expect((await browser.get('/app')).status).toBe(303);
    await expectSignIn(email, PASSWORD);
    expectRefused(await admin.send('PATCH', path, { email: (await newUser()).email }), 'email');
    expectRefused(await admin.send('PATCH', path, { name: null }), 'name');
    expectFailure(await admin.send('PATCH', '/users/999999999', { name: 'x' }), 404, 'not_found');
  });

  it('ADMIN-44 `DELETE /api/admin/v1/users/:user_id` removes the user from all stores and ends their sessions and tokens', async () => {
    const user = await newUser();
    const { id } = await newStore(user.id, 'Alone');
    const { token } = await newToken(user.id);
    await expectSignIn(user.email, PASSWORD);
    const { status, body } = await admin.send('DELETE', `/users/${user.id}`);
    expect([status, body]).toEqual([
      200,
      {
        user_id: user.id,
        tokens_ended: 1,
        sessions_ended: 1,
        stores: [{ account_id: id, name: 'Alone', owners_count: 0, members_count: 0 }],
      },
    ]);
    await eventually(
      () => reads(token),
      (seen) => seen === 401,
    );
    await expectSignIn(user.email, PASSWORD, false);
    const removed = await admin.get(`/users/${user.id}`);
    expect(removed.body).toMatchObject({ stores: [], removed_at: expect.any(String) });
    expectFailure(await admin.send('DELETE', `/users/${user.id}`), 404, 'not_found');
  });

  it('ADMIN-45 `PUT …/password` sets a password, or generates one, and ends all sessions', async () => {
    const user = await newUser();
    const browser = new Browser(service.running);
    await browser.signIn(user.email, PASSWORD);
    const path = `/users/${user.id}/password`;
    const chosen = await admin.send('PUT', path, { password: 'nine slow rivers' });
    expect(chosen.body).toEqual({ user_id: user.id, password: null });
    expect((await browser.get('/app')).status).toBe(303);
    await expectSignIn(user.email, 'nine slow rivers');
    const { body } = await admin.send<User>('PUT', path, {});
    const again = await expectSignIn(user.email, String(body.password));
    expect((await again.get('/app')).location).toBe('/app/account/first-password');
    await expectSignIn(user.email, 'nine slow rivers', false);
    expectRefused(await admin.send('PUT', path, { password: user.email }), 'password');
    expectFailure(await admin.send('PUT', '/users/999999999/password', {}), 404, 'not_found');
  });

  it('ADMIN-46 `POST …/password_link` sends the user an e-mail with a link for a password of their own, three times an hour at most', async () => {
    const user = await newUser();
    const send = () => admin.post(`/users/${user.id}/password_link`);
    for (let i = 0; i < 3; i++) expect((await send()).status).toBe(204);
    expectRefused(await send(), 'base', 'limit_reached');
    const { rows } = await service.running.database.query(
      'select 1 from password_resets where user_id = $1 and used_at is null',
      [user.id],
    );
    expect(rows).toHaveLength(3);
    expectFailure(await admin.post('/users/999999999/password_link'), 404, 'not_found');
    const otherService = await startService();
    try {
      const { token } = await otherService.execute(new CreateAdminToken(cli, 'silent'));
      const { userId } = await otherService.execute(
        new CreateUser(cli, newAddress(), 'Kim', PASSWORD),
      );
      const silent = admin.as(token);
      const client = new AdminClient(
        otherService.baseUrl,
        silent.token,
        createResponseChecker(document),
      );
      expectRefused(await client.post(`/users/${userId}/password_link`), 'base');
    } finally {
      await otherService.stop();
    }
  });

  it('ADMIN-47 `DELETE …/second_factor` and `DELETE …/company_sign_in` let in a user who cannot sign in any more, and are 204 too when there is nothing to remove', async () => {
    const user = await newUser();
    const { database } = service.running;
    await database.query(
      `insert into second_factors (user_id, secret, created_at, confirmed_at)
       values ($1, '\\x00', now(), now())`,
      [user.id],
    );
    await database.query(
      `insert into company_sign_ins (issuer, subject, user_id, created_at)
       values ('https://id.example', $2, $1, now())`,
      [user.id, user.email],
    );
    for (const name of ['second_factor', 'company_sign_in']) {
      for (let i = 0; i < 2; i++) {
        expect((await admin.send('DELETE', `/users/${user.id}/${name}`)).status).toBe(204);
      }
      expectFailure(await admin.send('DELETE', `/users/999999999/${name}`), 404, 'not_found');
    }
    const { rows } = await database.query(
      `select 1 from second_factors where user_id = $1
       union all select 1 from company_sign_ins where user_id = $1`,
      [user.id],
    );
    expect(rows).toEqual([]);
  });
});

describe('API tokens', () => {
  it("ADMIN-50 `POST /api/admin/v1/tokens` creates a token of a user, with the restrictions of the API's tokens, and returns it once", async () => {
    const user = await newUser();
    const [first, second] = [await newStore(user.id), await newStore(user.id)];
    const { body, status } = await admin.post<Token>('/tokens', {
      user_id: user.id,
      name: 'reports',
      role: 'manager',
      account_ids: [first.id],
      read_only: true,
      expires_at: '2100-12-31',
    });
    const { token, ...details } = body;
    expect([status, details]).toEqual([
      201,
      {
        id: expect.any(Number),
        user_id: user.id,
        name: 'reports',
        role: 'manager',
        account_ids: [first.id],
        read_only: true,
        per_minute: null,
        created_at: expect.any(String),
        expires_at: '2100-12-31T23:59:59.999Z',
        last_used_at: null,
        revoked_at: null,
        ends_when_confirmed: true,
      },
    ]);
    expect((await admin.get(`/tokens/${body.id}`)).body).toEqual(details);
    const client = new Client(service.running.baseUrl, first.id, token);
    expect((await client.get(client.store)).status).toBe(200);
    expect((await client.get(`/api/v1/accounts/${second.id}`)).status).toBe(404);
    expect((await client.post(`${client.store}/customers`, {})).status).toBe(403);
    await admin.send('PATCH', `/users/${user.id}`, { email_confirmed: true });
    expect((await admin.get(`/tokens/${body.id}`)).body).toEqual({
      ...details,
      ends_when_confirmed: false,
    });
  });

  it('ADMIN-51 A store that the user does not belong to, an end in the past and more than 100 stores are 422; a user who does not exist is 404', async () => {
    const user = await newUser();
    const { id: foreign } = await newStore((await newUser()).id);
    const create = (more: object) =>
      admin.post('/tokens', { user_id: user.id, name: 'till', ...more });
    expectRefused(await create({ account_ids: [foreign] }), 'account_ids');
    expectRefused(await create({ expires_at: '2020-01-01' }), 'expires_at');
    const many = Array.from({ length: 101 }, (_, i) => i + 1);
    for (const account_ids of [many, [], ['x'], [0], 'all', [1.5]]) {
      expectRefused(await create({ account_ids }), 'account_ids');
    }
    expectRefused(await create({ name: '', role: 'king', read_only: 'perhaps' }), [
      'name',
      'read_only',
      'role',
    ]);
    expectFailure(await create({ user_id: 999_999_999 }), 404, 'not_found');
  });

  it('ADMIN-52 The list of tokens has every one in force by id, in pages with `limit`, `cursor` and `Link`', async () => {
    const user = await newUser();
    const own = [];
    for (let i = 0; i < 3; i++) own.push((await newToken(user.id)).id);
    expect(await readPages(`/tokens?user_id=${user.id}&limit=2`)).toEqual(own);
    const all = await readPages('/tokens?limit=2');
    expect(all).toEqual([...all].sort((a, b) => a - b));
    expect(all).toEqual(expect.arrayContaining(own));
    await admin.send('DELETE', `/tokens/${own[1]}`);
    expect(await readPages(`/tokens?user_id=${user.id}`)).toEqual([own[0], own[2]]);
    const complete = await admin.get<object[]>(`/tokens?user_id=${user.id}&include_ended=true`);
    expect(complete.body).toHaveLength(3);
    expect(complete.text).not.toMatch(/ink_|sha256/);
  });

  it('ADMIN-53 `PATCH /api/admin/v1/tokens/:token_id` gives a token a limit of its own', async () => {
    const { id, token } = await newToken((await newUser()).id);
    const { status, body } = await admin.send('PATCH', `/tokens/${id}`, { per_minute: 7 });
    expect([status, body]).toEqual([200, expect.objectContaining({ id, per_minute: 7 })]);
    const readLimit = async () =>
      (await new Client(service.running.baseUrl, 0, token).get('/api/v1/token')).headers.get(
        'ratelimit-limit',
      );
    await eventually(readLimit, (limit) => limit === '7');
    for (const per_minute of [0, 1.5, 'x', null, 1e12]) {
      expectRefused(await admin.send('PATCH', `/tokens/${id}`, { per_minute }), 'per_minute');
    }
    expectFailure(
      await admin.send('PATCH', '/tokens/999999999', { per_minute: 7 }),
      404,
      'not_found',
    );
  });

  it('ADMIN-54 `DELETE /api/admin/v1/tokens/:token_id` revokes a token', async () => {
    const { id, token } = await newToken((await newUser()).id);
    expect(await reads(token)).toBe(200);
    expect((await admin.send('DELETE', `/tokens/${id}`)).status).toBe(204);
    await eventually(
      () => reads(token),
      (status) => status === 401,
    );
    expect((await admin.send('DELETE', `/tokens/${id}`)).status).toBe(204);
    expect((await admin.get(`/tokens/${id}`)).body).toMatchObject({
      revoked_at: expect.any(String),
    });
    expectFailure(await admin.send('DELETE', '/tokens/999999999'), 404, 'not_found');
  });
});
