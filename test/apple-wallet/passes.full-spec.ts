import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { PassDispatch } from '#outbound/passes/pass-dispatch.service.js';
import { eventually } from '../support/jest/eventually.js';
import { PassFollower, Recorder } from '../support/services/pass-dispatcher.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

let service: LocalService;
let store: Client;
let follower: PassFollower;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  follower = new PassFollower(service);
});
afterAll(async () => {
  await follower.stop();
  await service.stop();
});

async function openPass(options: Parameters<typeof enrol>[1] = {}) {
  const enrolled = await enrol(store, options);
  await follower.waitUntilCaughtUp();
  const id = await follower.open(enrolled.customerCard.uuid);
  return { ...enrolled, id };
}

const waitForTagAfter = (id: number, after: number) =>
  eventually(
    () => follower.passes.find(id),
    (pass) => (pass?.tag ?? 0) > after,
  );

async function findUpdate(
  id: number,
): Promise<{ priority: number; requestCount: number } | undefined> {
  const { rows } = await follower.pool.query<{ priority: number; requests: string }>(
    `select priority, request_number as requests from pass_updates where channel = 'web' and target = $1`,
    [String(id)],
  );
  const [row] = rows;
  return row && { priority: row.priority, requestCount: Number(row.requests) };
}

describe('passes', () => {
  it('an opened pass shows the notification of a stamp, then of the reward it unlocked, then of its redemption', async () => {
    const { path, id, rewards } = await openPass({ rewards: [5] });
    let before = await follower.tag(id);
    await store.stamp(path, 2);
    const stampedPass = await waitForTagAfter(id, before);
    expect(stampedPass).toMatchObject({
      notification: { kind: 'stamped', stamps: 2 },
      notificationTag: stampedPass?.tag,
      balanceTag: stampedPass?.tag,
    });
    before = stampedPass?.tag ?? 0;
    await store.stamp(path, 4);
    // Projected event by event, the pass may show the stamps first.
    await waitForTagAfter(id, before);
    await follower.waitUntilCaughtUp();
    const unlockedPass = await follower.passes.find(id);
    expect(unlockedPass?.notification).toEqual({
      kind: 'unlocked',
      rewardName: 'Reward at 5',
      text: 'Your reward is ready: Reward at 5.',
      hasCount: false,
      isOwn: false,
    });
    before = unlockedPass?.tag ?? 0;
    await store.post(`${path}/redeem`, { reward_id: rewards[0]?.id });
    expect((await waitForTagAfter(id, before))?.notification).toMatchObject({
      kind: 'redeemed',
      rewardName: 'Reward at 5',
    });
  });

  it('a stamp with skip_notifications changes the balance and not the notification, even if it unlocks a reward', async () => {
    const { path, id } = await openPass({ rewards: [3] });
    await store.stamp(path, 1);
    const changedPass = await waitForTagAfter(id, 0);
    await store.stamp(path, { stamps: 4, skip_notifications: true });
    const silentPass = await waitForTagAfter(id, changedPass?.tag ?? 0);
    expect(silentPass).toMatchObject({
      notification: { kind: 'stamped', stamps: 1 },
      notificationTag: changedPass?.tag,
      balanceTag: silentPass?.tag,
    });
  });

  it('each stamp requests the same urgent update of an opened pass', async () => {
    const { path, id } = await openPass();
    await store.stamp(path, 1);
    await waitForTagAfter(id, 0);
    expect(await findUpdate(id)).toEqual({ priority: 0, requestCount: 1 });
    const before = await follower.tag(id);
    await store.stamp(path, 1);
    await waitForTagAfter(id, before);
    expect(await findUpdate(id)).toEqual({ priority: 0, requestCount: 2 });
  });

  it('a stamp on a card whose pass was never opened creates neither a pass nor an update', async () => {
    const { path, customerCard } = await enrol(store);
    await store.stamp(path, 1);
    await follower.waitUntilCaughtUp();
    expect(await follower.passes.find(customerCard.id)).toBeUndefined();
    expect(await findUpdate(customerCard.id)).toBeUndefined();
  });

  it('a change of a card, reward or store refreshes every pass, without a notification and with low priority', async () => {
    const { card, customer, id } = await openPass();
    const others = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const enrolled = await enrol(store);
        const { body } = await store.post<{ uuid: string }>(
          `${store.store}/customers/${enrolled.customer.id}/customer_cards`,
          { card_id: card.id },
        );
        await follower.waitUntilCaughtUp();
        return follower.open(body.uuid);
      }),
    );
    const changes = [
      () => store.send('PATCH', `${store.store}/cards/${card.id}`, { card: { name: 'Tea' } }),
      () =>
        store.post(`${store.store}/rewards`, {
          reward: { card_id: card.id, name: 'Cake', stamps_required: 4 },
        }),
      () => store.send('PATCH', store.store, { account: { store_name: 'Café Tal' } }),
      () =>
        store.send('PATCH', `${store.store}/customers/${customer.id}`, {
          customer: { first_name: 'Bea' },
        }),
    ];
    for (const [i, change] of changes.entries()) {
      const all = i === 3 ? [id] : [id, ...others];
      const before = await Promise.all(all.map((id) => follower.tag(id)));
      expect((await change()).status).toBeLessThan(300);
      for (const [n, id] of all.entries()) {
        const pass = await waitForTagAfter(id, before[n] ?? 0);
        expect([pass?.notificationTag, pass?.balanceTag]).toEqual([0, 0]);
      }
    }
    expect((await findUpdate(others[0] ?? 0))?.priority).toBe(1);
    expect(follower.recorder.scopes).toContainEqual({
      accountId: store.accountId,
      cardId: card.id,
    });
    expect(follower.recorder.scopes).toContainEqual({ accountId: store.accountId, cardId: null });
  });

  it('a change that no pass shows raises no tag and requests no update', async () => {
    const { card, id } = await openPass();
    const before = await follower.tag(id);
    const limit = { card: { max_stamps_per_day: 7 } };
    expect((await store.send('PATCH', `${store.store}/cards/${card.id}`, limit)).status).toBe(200);
    for (const action of ['archive', 'unarchive', 'archive']) {
      expect((await store.post(`${store.store}/cards/${card.id}/${action}`)).status).toBe(200);
    }
    await follower.waitUntilCaughtUp();
    expect(await follower.tag(id)).toBe(before);
    expect(await findUpdate(id)).toBeUndefined();
  });

  it('the pass of an erased customer is void and contains nothing personal', async () => {
    const { customer, id, customerCard } = await openPass();
    const before = await follower.tag(id);
    expect((await store.post(`${store.store}/customers/${customer.id}/erase`)).status).toBe(204);
    await waitForTagAfter(id, before);
    const card = await follower.passes.findHolder(customerCard.uuid);
    if (!card) throw new Error('the card has gone');
    const { content } = await follower.contents.open(card);
    expect([content.state, content.memberName]).toEqual(['void', null]);
    expect(JSON.stringify(content)).not.toContain('Anna');
  });
});

describe('the tags of passes', () => {
  it('rise with each change and stay unique while two processes believe that they lead', async () => {
    const passes = [await openPass(), await openPass(), await openPass()];
    const second = new PassFollower(service);
    try {
      let highest = Math.max(...(await Promise.all(passes.map(({ id }) => follower.tag(id)))));
      for (let round = 0; round < 5; round++) {
        await Promise.all(passes.map(({ path }) => store.stamp(path, 1)));
        await follower.waitUntilCaughtUp();
        const tags = await Promise.all(passes.map(({ id }) => follower.tag(id)));
        expect(Math.min(...tags)).toBeGreaterThan(highest);
        expect(new Set(tags).size).toBe(tags.length);
        highest = Math.max(...tags);
      }
    } finally {
      await second.stop();
    }
  });
});

describe('the queue of pass updates', () => {
  const updates = () => follower.updates;
  const requestUpdates = (channel: 'apple', names: string[], accountId: number, priority: 0 | 1) =>
    updates().request(
      follower.pool,
      names.map((target) => ({ channel, target, accountId })),
      priority,
    );
  const makeDue = () =>
    follower.pool.query(`update pass_updates set due_at = now() where channel = 'apple'`);
  const clearQueue = () => follower.pool.query(`delete from pass_updates where channel = 'apple'`);

  it('alternates between stores, and leases urgent updates first', async () => {
    await requestUpdates('apple', ['r1', 'r2'], 1, 1);
    await requestUpdates('apple', ['a1', 'a2', 'a3', 'a4'], 1, 0);
    await makeDue();
    await requestUpdates('apple', ['b1'], 2, 0);
    await follower.pool.query(`update pass_updates set due_at = now() where target = 'b1'`);
    const first = (await updates().claimByPriority('apple', 2)).map(({ target }) => target);
    expect(first).toContain('b1');
    expect(first.filter((target) => target.startsWith('r'))).toEqual([]);
    const others = (await updates().claimByPriority('apple', 10)).map(({ target }) => target);
    expect(others.toSorted()).toEqual(
      ['a1', 'a2', 'a3', 'a4', 'r1', 'r2'].filter((target) => !first.includes(target)),
    );
    expect(await updates().claimByPriority('apple', 10)).toEqual([]);
    await clearQueue();
  });

  it('alternates between stores when one update is leased at a time', async () => {
    await requestUpdates('apple', ['a1', 'a2', 'a3', 'a4'], 1, 0);
    await makeDue();
    await requestUpdates('apple', ['b1'], 2, 0);
    await requestUpdates('apple', ['c1', 'c2'], 3, 0);
    await makeDue();
    await follower.pool.query(
      `update pass_updates set due_at = due_at - interval '1 minute' where account_id = 1`,
    );
    const stores: number[] = [];
    for (let i = 0; i < 7; i++) {
      stores.push(
        ...(await updates().claimByPriority('apple', 1)).map(({ accountId }) => accountId),
      );
    }
    expect(stores.slice(0, 3).toSorted()).toEqual([1, 2, 3]);
    expect(stores.slice(3, 5).toSorted()).toEqual([1, 3]);
    expect(stores.slice(5)).toEqual([1, 1]);
    await clearQueue();
  });

  it('leases an update again that was requested while it was being sent', async () => {
    await requestUpdates('apple', ['c1'], 1, 0);
    await makeDue();
    const [update] = await updates().claimByPriority('apple', 1);
    if (!update) throw new Error('nothing was claimed');
    await requestUpdates('apple', ['c1'], 1, 0);
    await updates().finish(update);
    const [again] = await updates().claimByPriority('apple', 1);
    expect(again).toMatchObject({ target: 'c1', attempts: 1 });
    if (again) await updates().finish(again);
    await makeDue();
    expect(await updates().claimByPriority('apple', 1)).toEqual([]);
  });

  it('ignores a result from a process whose lease has expired', async () => {
    await requestUpdates('apple', ['d1'], 1, 0);
    await makeDue();
    const [lateUpdate] = await updates().claimByPriority('apple', 1);
    await makeDue();
    const [second] = await updates().claimByPriority('apple', 1);
    if (!lateUpdate || !second) throw new Error('nothing was claimed');
    await updates().finish(second);
    await requestUpdates('apple', ['d1'], 1, 0);
    await makeDue();
    await updates().postpone(lateUpdate, 60_000, 'late');
    await updates().finish(lateUpdate);
    expect(await updates().claimByPriority('apple', 1)).toMatchObject([
      { target: 'd1', attempts: 1 },
    ]);
    await clearQueue();
  });

  it('is processed by a dispatcher, which retries a failed update until it succeeds', async () => {
    await follower.pool.query(`delete from pass_updates`);
    const recorder = new Recorder();
    recorder.outcome = { kind: 'failed', error: 'out of order' };
    const dispatch = new PassDispatch(updates(), [recorder], new QueueMetrics(new Registry()));
    dispatch.start();
    try {
      await updates().request(follower.pool, [{ channel: 'web', target: 'x', accountId: 1 }], 0);
      await eventually(
        () => recorder.sent.length,
        (count) => count >= 2,
      );
      expect(recorder.sent.map(({ attempts }) => attempts).slice(0, 2)).toEqual([1, 2]);
      recorder.outcome = { kind: 'done' };
      await eventually(
        () => follower.pool.query(`select 1 from pass_updates`),
        ({ rowCount }) => rowCount === 0,
      );
    } finally {
      await dispatch.stop(5_000);
    }
  });
});
