import { describe, expect, it } from '@jest/globals';
import { CreateToken, RevokeToken } from '#identity/token.commands.js';
import { expectFailure, useSharedService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { startSecondApi } from '../support/services/second-api.js';
import { cli } from '../support/services/service.js';

const service = useSharedService();

describe('tokens', () => {
  it('TOKEN-01 A token that has expired is 401, like one that was revoked', async () => {
    const store = await service.newStore();
    const soon = async () => {
      const expiry = new Date(Date.now() + 1_500);
      const { token } = await service.running.execute(
        new CreateToken(cli, store.email, 'soon', expiry),
      );
      const client = store.as(token);
      return { client, status: (await client.get(store.store)).status };
    };
    // On a busy machine the first may already have expired.
    const { client } = await eventually(soon, ({ status }) => status === 200);
    const after = await eventually(
      () => client.get(store.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 401, 'unauthorized');
  });

  it('TOKEN-02 A revoked token stops in every process of the service', async () => {
    const store = await service.newStore();
    const { program, second } = await startSecondApi(service.running, store);
    try {
      const { tokenId, token } = await service.running.execute(
        new CreateToken(cli, store.email, 'till'),
      );
      const clients = [store, second].map(({ baseUrl, accountId }) => ({ baseUrl, accountId }));
      const statuses = () =>
        Promise.all(
          clients.map(async ({ baseUrl, accountId }) => {
            const headers = { authorization: `Bearer ${token}` };
            return (await fetch(`${baseUrl}/api/v1/accounts/${accountId}`, { headers })).status;
          }),
        );
      expect(await statuses()).toEqual([200, 200]);
      await service.running.execute(new RevokeToken(cli, tokenId));
      await eventually(statuses, (seen) => seen.every((status) => status === 401));
    } finally {
      await program.kill('SIGKILL');
    }
  });
});
