import { describe, expect, it } from '@jest/globals';
import { CommandBus } from '@nestjs/cqrs';
import { RemoveUser } from '#identity/identity.commands.js';
import { expectFailure, useService } from './support/contract.js';
import { eventually } from './support/eventually.js';
import { cli } from './support/service.js';

const service = useService();

describe('tokens', () => {
  it('stop working with their user', async () => {
    const store = await service.newStore();
    expect((await store.get(store.store)).status).toBe(200);
    await service.running.app.get(CommandBus).execute(new RemoveUser(cli, store.email));
    // Word of a change reaches the api within moments.
    const after = await eventually(
      () => store.get(store.store),
      ({ status }) => status !== 200,
    );
    expectFailure(after, 401, 'unauthorized');
  });

  it('are kept as hashes only', async () => {
    const store = await service.newStore();
    const { rows } = await service.running.database.query<{ everything: string }>(
      `select coalesce(string_agg(t::text, ' '), '') as everything from api_tokens t`,
    );
    expect(rows[0]?.everything).toContain('till');
    expect(rows[0]?.everything).not.toContain(store.token);
  });
});
