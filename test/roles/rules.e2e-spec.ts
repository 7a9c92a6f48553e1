import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember, ChangeRole, RemoveMember } from '#identity/member.commands.js';
import { isAllowed, OPERATIONS, ROLES, type Operation, type Role } from '#identity/roles.js';
import { UNRESTRICTED, type TokenRestrictions } from '#identity/token.js';
import {
  expectFailure,
  useSharedService,
  type ContractClient,
  type Failure,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { cli } from '../support/services/service.js';

type Member = { email: string; client: ContractClient };
type Described = { id: Operation; method: string; path: string };

const service = useSharedService();
const store = service.useStore();
let members: Record<Role, Member>;

async function memberWith(role: Role): Promise<Member> {
  const email = `${randomUUID()}@member.example`;
  await service.running.execute(new CreateUser(cli, email, role, 'correct horse'));
  await service.running.execute(new AddMember(cli, store.accountId, email, role));
  const { token } = await service.running.execute(new CreateToken(cli, email, role));
  return { email, client: store.as(token) };
}

/** Creates a client with another token of the user. */
async function restrict(
  email: string,
  restrictions: Partial<TokenRestrictions>,
  expiresAt: Date | null = null,
): Promise<ContractClient> {
  const { token } = await service.running.execute(
    new CreateToken(cli, email, 'restricted', expiresAt, { ...UNRESTRICTED, ...restrictions }),
  );
  return store.as(token);
}

/** With ids of records that do not exist, and no body: what is allowed does nothing either. */
async function operations(): Promise<Described[]> {
  type Methods = Record<string, { operationId: Operation }>;
  const { body } = await service.anonymous.get<{ paths: Record<string, Methods> }>('/openapi.json');
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({
      id: operationId,
      method: method.toUpperCase(),
      path: path
        .replace('{account_id}', String(store.accountId))
        .replaceAll(/\{[a-z_]+\}/g, '999999'),
    })),
  );
}

beforeAll(async () => {
  members = {
    owner: await memberWith('owner'),
    manager: await memberWith('manager'),
    staff: await memberWith('staff'),
  };
});

describe('roles', () => {
  it('ROLE-01 An operation is 403 for users whose role does not allow it; others get past it', async () => {
    const all = await operations();
    const ofTheApi = OPERATIONS.filter((operation) => !operation.includes('.'));
    expect(all.map(({ id }) => id).toSorted()).toEqual(ofTheApi.toSorted());
    for (const role of ROLES) {
      for (const { id, method, path } of all) {
        const { status } = await members[role].client.send(method, path);
        expect([role, id, status !== 403]).toEqual([role, id, isAllowed(role, id)]);
      }
    }
  });

  it('ROLE-02 The 403 of a role has the code `forbidden`, with advice in `resolution`', async () => {
    const refused = await members.staff.client.get<Failure>(`${store.store}/history`);
    expectFailure(refused, 403, 'forbidden');
    expect(refused.body.resolution).toMatch(/role/);
  });

  it('ROLE-03 The role is checked after the store and before the body: media type, size and JSON do not matter', async () => {
    const otherStore = await service.newStore();
    const { client } = members.staff;
    const broken = { 'content-type': 'text/plain' };
    expectFailure(
      await client.send('POST', `${otherStore.store}/cards`, undefined, broken),
      404,
      'not_found',
    );
    expectFailure(await client.send('POST', `${store.store}/cards`, '{', broken), 403, 'forbidden');
  });

  it('ROLE-04 A role holds in one store: the same token may do more in another', async () => {
    const own = await service.newStore();
    await service.running.execute(new AddMember(cli, own.accountId, members.staff.email, 'owner'));
    const { client } = members.staff;
    await eventually(
      async () => (await client.get(`${own.store}/audit`)).status,
      (status) => status === 200,
    );
    expectFailure(await client.get(`${store.store}/audit`), 403, 'forbidden');
    const { body } = await client.get<{ id: number }[]>('/api/v1/accounts');
    expect(body.map(({ id }) => id)).toEqual([store.accountId, own.accountId]);
  });

  it('ROLE-05 A changed role holds for the tokens that the user has already', async () => {
    const { email, client } = await memberWith('staff');
    const requestHistory = () => client.get(`${store.store}/history`);
    expect((await requestHistory()).status).toBe(403);
    for (const [role, expected] of [
      ['manager', 200],
      ['staff', 403],
    ] as const) {
      await service.running.execute(new ChangeRole(cli, store.accountId, email, role));
      await eventually(
        async () => (await requestHistory()).status,
        (status) => status === expected,
      );
    }
  });
});

describe('restricted tokens', () => {
  it("TOKEN-03 `GET /api/v1/token` shows the five fields of the request's own token", async () => {
    const expiry = new Date(Date.now() + 3_600_000);
    const restrictions = { accountIds: [store.accountId], isReadOnly: true };
    for (const role of ROLES) {
      const client = await restrict(members[role].email, { ...restrictions, role }, expiry);
      const { status, body } = await client.get('/api/v1/token');
      expect([status, body]).toEqual([
        200,
        {
          name: 'restricted',
          role,
          account_ids: [store.accountId],
          read_only: true,
          expires_at: expiry.toISOString(),
        },
      ]);
    }
    expect((await members.staff.client.get('/api/v1/token')).body).toEqual({
      name: 'staff',
      role: null,
      account_ids: null,
      read_only: false,
      expires_at: null,
    });
  });

  it('TOKEN-04 A token with a `role` is 403 for every operation that the role does not allow, like a user with that role', async () => {
    const all = await operations();
    for (const role of ROLES) {
      const client = await restrict(members.owner.email, { role });
      for (const { id, method, path } of all) {
        const { status } = await client.send(method, path);
        expect([role, id, status !== 403]).toEqual([role, id, isAllowed(role, id)]);
      }
    }
  });

  it("TOKEN-05 A `role` never gives more than the user's own role in the store, and stays when that changes", async () => {
    const { email } = await memberWith('staff');
    const clients = await Promise.all(ROLES.map((role) => restrict(email, { role })));
    const readAll = () =>
      Promise.all(
        clients.map(async (client) => [
          (await client.get(`${store.store}/history`)).status,
          (await client.get(`${store.store}/audit`)).status,
        ]),
      );
    const refused = [403, 403];
    expect(await readAll()).toEqual([refused, refused, refused]);
    for (const [role, expected] of [
      ['owner', [[200, 200], [200, 403], refused]],
      ['manager', [[200, 403], [200, 403], refused]],
      ['staff', [refused, refused, refused]],
    ] as const) {
      await service.running.execute(new ChangeRole(cli, store.accountId, email, role));
      await eventually(readAll, (seen) => JSON.stringify(seen) === JSON.stringify(expected));
    }
  });

  it('TOKEN-06 A token with `account_ids` finds no other store: the list leaves it out, and every operation in it is 404', async () => {
    const other = await service.newStore();
    const { email } = members.owner;
    await service.running.execute(new AddMember(cli, other.accountId, email, 'owner'));
    const listStores = async (client: ContractClient, query = '') => {
      const { body } = await client.get<{ id: number }[]>(`/api/v1/accounts${query}`);
      return body.map(({ id }) => id);
    };
    const now = `?as_of=${new Date().toISOString()}`;
    const both = await restrict(email, { accountIds: [other.accountId, store.accountId] });
    expect(await listStores(both)).toEqual([store.accountId, other.accountId]);
    const one = await restrict(email, { accountIds: [other.accountId] });
    expect([await listStores(one), await listStores(one, now)]).toEqual([
      [other.accountId],
      [other.accountId],
    ]);
    expect((await one.get(other.store)).status).toBe(200);
    for (const { id, method, path } of await operations()) {
      if (!path.startsWith(store.store)) continue;
      const { status, body } = await one.send<Failure>(method, path);
      expect([id, status, body.error]).toEqual([id, 404, 'Store not found']);
    }
  });

  it("TOKEN-07 A store that a token's user has left is 404 for the token, also when `account_ids` has it", async () => {
    const { email } = await memberWith('owner');
    const client = await restrict(email, { accountIds: [store.accountId] });
    expect((await client.get(store.store)).status).toBe(200);
    await service.running.execute(new RemoveMember(cli, store.accountId, email));
    const after = await eventually(
      () => client.get(store.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 404, 'not_found');
    expect((await client.get('/api/v1/accounts')).body).toEqual([]);
  });

  it('TOKEN-08 A read-only token is 403 for every operation that is not a `GET`, also with `dry_run`', async () => {
    const client = await restrict(members.owner.email, { isReadOnly: true });
    for (const { id, method, path } of await operations()) {
      const { status } = await client.send(method, path);
      expect([id, status === 403]).toEqual([id, method !== 'GET']);
    }
    const stamp = `${store.store}/customers/1/customer_cards/1/stamp?dry_run=true`;
    expectFailure(await client.post(stamp, { stamps: 1 }), 403, 'forbidden');
    expect((await client.send('HEAD', store.store)).status).toBe(200);
    expect((await client.send('OPTIONS', store.store)).status).toBe(204);
  });

  it('TOKEN-09 The 403 of a read-only token has the code `forbidden` and says that the token may only read', async () => {
    const client = await restrict(members.owner.email, { isReadOnly: true });
    const broken = { 'content-type': 'text/plain' };
    const refused = await client.send<Failure>('POST', `${store.store}/cards`, '{', broken);
    expectFailure(refused, 403, 'forbidden');
    expect(refused.body.error).toMatch(/may only read/);
    const otherStore = await service.newStore();
    expectFailure(await client.send('POST', `${otherStore.store}/cards`, '{'), 404, 'not_found');
    for (const path of ['/api/v1/nothing', `${store.store}/nothing`]) {
      expectFailure(await client.post(path, {}), 404, 'not_found');
    }
    expect((await client.delete(store.store)).status).toBe(405);
  });

  it('TOKEN-10 No operation creates a token or changes one', async () => {
    const ofTokens = (await operations()).filter(({ path }) => path.includes('token'));
    expect(ofTokens.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /api/v1/token']);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status } = await members.owner.client.send(method, '/api/v1/token', { role: null });
      expect([method, status]).toEqual([method, 405]);
    }
  });

  it('TOKEN-11 A token can only name stores that its user belongs to, at least one', async () => {
    const otherStore = await service.newStore();
    for (const accountIds of [
      [],
      [otherStore.accountId],
      [store.accountId, otherStore.accountId],
    ]) {
      await expect(restrict(members.owner.email, { accountIds })).rejects.toThrow(/account_ids/);
    }
  });

  it('TOKEN-12 The audit entry `token.created` says what the token is restricted to', async () => {
    const otherStore = await service.newStore();
    const { email } = await memberWith('manager');
    await service.running.execute(new AddMember(cli, otherStore.accountId, email, 'owner'));
    await restrict(email, { role: 'staff', isReadOnly: true, accountIds: [store.accountId] });
    const findEntries = async (client: ContractClient) => {
      const path = `${client.store}/audit?type=token.created`;
      return (await client.get<{ subject: object }[]>(path)).body.map(({ subject }) => subject);
    };
    const [entry] = await findEntries(members.owner.client);
    expect(entry).toMatchObject({
      name: 'restricted',
      role: 'staff',
      account_ids: [store.accountId],
      read_only: true,
    });
    const names = (await findEntries(otherStore)).map(
      (subject) => (subject as { name: string }).name,
    );
    expect(names).toEqual(['till']);
  });
});
