import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { CreateUser } from '#identity/identity.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { AddMember, ChangeRole } from '#identity/member.commands.js';
import { isAllowed, OPERATIONS, ROLES, type Operation, type Role } from '#identity/roles.js';
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
let store: ContractClient;
let members: Record<Role, Member>;

async function memberWith(role: Role): Promise<Member> {
  const email = `${randomUUID()}@member.example`;
  await service.running.execute(new CreateUser(cli, email, role, 'correct horse'));
  await service.running.execute(new AddMember(cli, store.accountId, email, role));
  const { token } = await service.running.execute(new CreateToken(cli, email, role));
  return { email, client: store.as(token) };
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
  store = await service.newStore();
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

  it('ROLE-02 The 403 has the code `forbidden`, with advice in `resolution`', async () => {
    const refused = await members.staff.client.get<Failure>(`${store.store}/history`);
    expectFailure(refused, 403, 'forbidden');
    expect(refused.body.resolution).toMatch(/role/);
  });

  it('ROLE-03 The role is checked after the store and before the body: media type, size and JSON do not matter', async () => {
    const other = await service.newStore();
    const { client } = members.staff;
    const broken = { 'content-type': 'text/plain' };
    expectFailure(
      await client.send('POST', `${other.store}/cards`, undefined, broken),
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
