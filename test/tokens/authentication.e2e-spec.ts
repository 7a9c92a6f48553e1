import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { CreateToken, RevokeToken } from '#identity/token.commands.js';
import { AddMember, RemoveMember } from '#identity/member.commands.js';
import { expectFailure, useSharedService, type Failure } from '../support/http/contract.js';
import { Browser } from '../support/browser/browser.js';
import { eventually } from '../support/jest/eventually.js';
import { exchange } from '../support/http/raw-request.js';
import { cli } from '../support/services/service.js';

const service = useSharedService();
const store = service.useStore();

type Operation = { method: string; path: string };

/** Every operation of the document, with 1 for each id but the store's. */
async function operations(accountId: number): Promise<Operation[]> {
  const { body } = await service.anonymous.get<{ paths: Record<string, object> }>('/openapi.json');
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path: path.replace('{account_id}', String(accountId)).replaceAll(/\{[a-z_]*id\}/g, '1'),
    })),
  );
}

const asSays = (authorization: string) =>
  service.anonymous.send<Failure>('GET', '/api/v1/accounts', undefined, { authorization });

describe('authentication', () => {
  it('AUTH-01 Every endpoint except `GET /api/v1/status` rejects a request without a token with 401', async () => {
    const all = await operations(store.accountId);
    expect(all.length).toBeGreaterThan(20);
    const open: string[] = [];
    for (const { method, path } of all) {
      const { status } = await service.anonymous.send(method, path);
      if (status !== 401) open.push(`${method} ${path} ${status}`);
    }
    expect(open).toEqual(['GET /api/v1/status 200']);
  });

  it('AUTH-02 A 401 has the code `unauthorized`', async () => {
    expectFailure(await service.anonymous.get('/api/v1/accounts'), 401, 'unauthorized');
  });

  it('AUTH-03 A 401 says in `resolution` which header to send', async () => {
    const { body } = await service.anonymous.get<Failure>('/api/v1/accounts');
    expect(body.resolution).toMatch(/Authorization: Bearer/);
  });

  it('AUTH-04 An `Authorization` header of another scheme, without a token or with more than one is 401', async () => {
    const { token } = store;
    for (const authorization of [
      'Bearer',
      'Bearer ',
      `Basic ${Buffer.from(`${token}:`).toString('base64')}`,
      `Token ${token}`,
      `${token}`,
      `Bearer ${token} ${token}`,
      `Bearer ${token}, Bearer ${token}`,
      `Bearer "${token}"`,
    ]) {
      const { status } = await asSays(authorization);
      expect([authorization, status]).toEqual([authorization, 401]);
    }
    const field = `Authorization: Bearer ${token ?? ''}`;
    for (const [fields, status] of [
      [[field], 200],
      [[field, field], 401],
      [[field, field.replace('Authorization', 'AUTHORIZATION')], 401],
      [[field, 'Authorization: Bearer x'], 401],
      [['Authorization: Bearer x', field], 401],
      [[field, 'Authorization:'], 401],
    ] as const) {
      const head = ['GET /api/v1/accounts HTTP/1.1', 'Host: x', 'Connection: close', ...fields];
      const response = await exchange(service.running.baseUrl, `${head.join('\r\n')}\r\n\r\n`);
      expect([fields, response.slice(0, 12)]).toEqual([fields, `HTTP/1.1 ${status}`]);
    }
  });

  it('AUTH-05 A token that was never issued is 401', async () => {
    const wrong = [`${store.token}x`, store.token?.slice(0, -1), store.token?.toUpperCase(), 'x'];
    for (const token of wrong) {
      expectFailure(await asSays(`Bearer ${token}`), 401, 'unauthorized');
    }
  });

  it("AUTH-06 The scheme's name is case-insensitive: `bearer` works as well as `Bearer`", async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await asSays(`${scheme} ${store.token}`)).status).toBe(200);
    }
  });

  it('AUTH-07 A token gives access to every store that its user belongs to, including stores joined after the token was created', async () => {
    const mine = await service.newStore();
    const later = await service.newStore();
    expect((await mine.get(later.store)).status).toBe(404);
    await service.running.execute(new AddMember(cli, later.accountId, mine.email, 'owner'));
    for (const path of [mine.store, later.store, `${later.store}/cards`]) {
      const reached = await eventually(
        async () => (await mine.get(path)).status,
        (status) => status !== 404,
      );
      expect(reached).toBe(200);
    }
  });

  it('AUTH-08 A store that the token has no access to is 404, with the same body as a store that does not exist', async () => {
    const otherStore = await service.newStore();
    const hidden = await store.get<Failure>(otherStore.store);
    const missing = await store.get<Failure>('/api/v1/accounts/987654321');
    expectFailure(hidden, 404, 'not_found');
    expect({ ...hidden.body, request_id: '' }).toEqual({ ...missing.body, request_id: '' });
  });

  it('AUTH-09 Every endpoint under a store is 404 for a token without access to the store', async () => {
    const otherStore = await service.newStore();
    const under = (await operations(otherStore.accountId)).filter(({ path }) =>
      path.startsWith(otherStore.store),
    );
    expect(under.length).toBeGreaterThan(20);
    const reached: string[] = [];
    for (const { method, path } of under) {
      const { status } = await store.send(method, path);
      if (status !== 404) reached.push(`${method} ${path} ${status}`);
    }
    expect(reached).toEqual([]);
  });

  it('AUTH-10 A revoked token is 401', async () => {
    const { tokenId, token } = await service.running.execute(
      new CreateToken(cli, store.email, 'second'),
    );
    const second = store.as(token);
    expect((await second.get(second.store)).status).toBe(200);
    await service.running.execute(new RevokeToken(cli, tokenId));
    const after = await eventually(
      () => second.get(second.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 401, 'unauthorized');
  });

  it("AUTH-11 When a user leaves a store, the user's tokens lose access to it: the store is 404", async () => {
    const left = await service.newStore();
    expect((await left.get(left.store)).status).toBe(200);
    await service.running.execute(new RemoveMember(cli, left.accountId, left.email));
    const after = await eventually(
      () => left.get(left.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 404, 'not_found');
    await service.running.execute(new AddMember(cli, left.accountId, left.email, 'owner'));
    await eventually(
      () => left.get(left.store),
      ({ status }) => status === 200,
    );
  });

  it("AUTH-13 A token ends when the e-mail address of its user is confirmed for the first time, by a link for a new password or by a company's sign-in", async () => {
    const own = await service.newStore();
    const reset = async (password: string) => {
      const token = randomBytes(32).toString('base64url');
      await service.running.database.query(
        `insert into password_resets (sha256, user_id, created_at, expires_at)
         select sha256($1), id, now(), now() + interval '1 hour' from users where email = $2`,
        [token, own.email],
      );
      const browser = new Browser(service.running);
      const { status } = await browser.post('/app/password/reset', { token, password });
      expect(status).toBe(303);
    };
    await reset('battery staple');
    expectFailure(await own.get(own.store), 401, 'unauthorized');
    const tokens = await service.running.execute(new CreateToken(cli, own.email, 'second'));
    const second = own.as(tokens.token);
    await reset('staple battery');
    expect((await second.get(own.store)).status).toBe(200);
  });

  it('AUTH-12 An unknown path under `/api/v1` is 401 without a token, not 404', async () => {
    for (const path of ['/api/v1/nothing', `${store.store}/nothing`, '/api/v1']) {
      expectFailure(await service.anonymous.get(path), 401, 'unauthorized');
    }
    const ids = ['abc', '0', '-1', '1.5', '%31x', '9'.repeat(40), 'x'.repeat(5_000), '%2F', '%zz'];
    const paths = [
      ...ids.flatMap((id) => [
        `/api/v1/accounts/${id}`,
        `/api/v1/accounts/${id}/cards`,
        `/api/v1/accounts/${id}/cards/${id}`,
        `/api/v1/accounts/${store.accountId}/cards/${id}`,
      ]),
      '/api/v1/',
      '/api/v1//',
      '/api/v1//status',
      '/api/v1/accounts/',
      '/api/v1/accounts//',
      '/api/v1/accounts//cards',
      `${store.store}/cards/`,
      `${store.store}//cards`,
      '/api/v1/ACCOUNTS',
      '/api/v1/accounts%2F1',
      '/api/v1/accounts;x=1',
      '/api/v1/../v1/accounts',
      '/api/v1/status/..',
      '/api/v1/status/x',
      '/api/v1/statuses',
      '/api/v1/%E0%A4%A',
      '/api/v1/%00',
      '/%61pi/v1/accounts/abc/cards',
      'http://cards.example/api/v1/accounts/abc/cards',
      '/api/v1?x=/api/v1/status',
      '/api/v1/accounts/abc/cards?limit=%zz#x',
    ];
    const methods = [
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'PROPFIND',
      'TRACE',
    ];
    const open: string[] = [];
    for (const path of paths) {
      for (const method of methods) {
        for (const field of ['', 'Authorization: Bearer x\r\n']) {
          const bytes = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${field}\r\n`;
          const response = await exchange(service.running.baseUrl, bytes);
          const isRefused = /^HTTP\/1\.1 401 [^]*ratelimit-limit: /i.test(response);
          if (!isRefused) open.push(`${method} ${path.slice(0, 60)} ${response.slice(9, 12)}`);
        }
      }
    }
    expect(open).toEqual([]);
    // With a token each of them is 404, and 405 if the path is one that takes other methods.
    for (const path of ['/api/v1/accounts/abc/cards', '/api/v1/accounts/%zz', '/api/v1/nothing']) {
      expectFailure(await store.get(path), 404, 'not_found');
    }
    expectFailure(await store.send('PUT', '/api/v1/accounts/abc/cards'), 405, 'method_not_allowed');
  });
});
