import { describe, expect, it } from '@jest/globals';
import type { CustomerCardDetailJson } from '#stamping/customer-card.dto.js';
import { expectFailure, useService } from './support/contract.js';
import { enrol } from './support/story.js';

const service = useService();

/** A request that is silent for too long between its begin and its end, so that another takes over its key. */
async function takenOver<R>(request: () => Promise<R>): Promise<R> {
  const { query } = service.running.database;
  await query(`create function takes_over() returns trigger language plpgsql as $$
    begin new.holder := gen_random_uuid(); return new; end $$`);
  await query(`create trigger takes_over before insert on es.outcomes
    for each row execute function takes_over()`);
  try {
    return await request();
  } finally {
    await query('drop function takes_over cascade');
  }
}

describe('Idempotency-Key', () => {
  it('fences a request that another one has taken over', async () => {
    const store = await service.newStore();
    const { path } = await enrol(store);
    const { query } = service.running.database;
    const stamp = () =>
      store.send('POST', `${path}/stamp`, { stamps: 1 }, { 'idempotency-key': 'fenced' });
    const balance = async () => (await store.get<CustomerCardDetailJson>(path)).body.stamps_count;
    const fenced = await takenOver(stamp);
    expectFailure(fenced, 409, 'idempotency_in_progress');
    expect(await balance()).toBe(0);
    expectFailure(await stamp(), 409, 'idempotency_in_progress');
    await query('update es.outcomes set held_until = now() where status is null');
    expect((await stamp()).status).toBe(200);
    expect(await balance()).toBe(1);
  });

  it('leaves it to whoever has taken over the key to refuse', async () => {
    const store = await service.newStore();
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const body = { reward_id: rewards[0]?.id };
    const redeem = () =>
      store.send('POST', `${path}/redeem`, body, { 'idempotency-key': 'theirs' });
    expectFailure(await takenOver(redeem), 409, 'idempotency_in_progress');
  });
});
