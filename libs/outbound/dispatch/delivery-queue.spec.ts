import { describe, expect, it } from '@jest/globals';
import type { QueuedDelivery, QueueView, Target } from './delivery.js';
import {
  DeliveryQueue,
  type Interruption,
  type QueueState,
  type Signal,
} from './delivery-queue.js';

const AT = new Date('2026-03-01T12:00:00.000Z');

const first = (id: number, customerId = id): QueuedDelivery => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
  redeliveryId: 0,
  createdAt: AT,
});
const again = (id: number, customerId = id): QueuedDelivery => ({
  ...first(id, customerId),
  tries: 1,
});
const redelivery = (id: number, redeliveryId: number): QueuedDelivery => ({
  ...first(id),
  manual: true,
  redeliveryId,
});

const create = (tier: DeliveryQueue<QueuedDelivery>['tier'] = 'fast') =>
  new DeliveryQueue<QueuedDelivery>(7, tier, 0);

/** Grown to its limit, so that only the order holds anything back. */
function createWideQueue(): DeliveryQueue<QueuedDelivery> {
  const queue = create();
  for (let id = 1; id <= 20; id++) respond(queue, first(id, id), 'success');
  return queue;
}

function respond(
  queue: DeliveryQueue<QueuedDelivery>,
  delivery: QueuedDelivery,
  signal: Signal,
  milliseconds = 5,
) {
  queue.add([delivery]);
  expect(queue.startNext()).toBe(delivery);
  queue.finishAttempt(delivery, signal, milliseconds, true);
}

/** As before the queue is read from its beginning. */
function dropAll(queue: DeliveryQueue<QueuedDelivery>): void {
  queue.interrupt('rereading');
  queue.requestLoad(64, 128);
}

function started(queue: DeliveryQueue<QueuedDelivery>): number[] {
  const ids: number[] = [];
  for (let next = queue.startNext(); next; next = queue.startNext()) ids.push(next.id);
  return ids;
}

describe('the order of a queue', () => {
  it('lets one first attempt a customer go at a time, in the order of the events', () => {
    const queue = createWideQueue();
    const [a1, a2, a3] = [first(101, 1), first(102, 1), first(104, 1)];
    queue.add([a1, a2, first(103, 2), a3]);
    expect(started(queue)).toEqual([101, 103]);
    expect(queue.waitingCount).toBe(2);
    queue.finishAttempt(a1, 'error', 5, true);
    expect(started(queue)).toEqual([102]);
    queue.finishAttempt(a2, 'success', 5, true);
    expect(started(queue)).toEqual([104]);
    queue.finishAttempt(a3, 'success', 5, true);
    expect(queue.waitingCount).toBe(0);
  });

  it('keeps the order of a card that a merge gave another customer', () => {
    const queue = createWideQueue();
    const about = (id: number, customerId: number, card: number) => ({
      ...first(id, customerId),
      stream: `customer_card-${card}`,
    });
    const [mine, updated, yours, alien, later] = [
      about(101, 1, 7),
      { ...first(102, 2), stream: 'customer-2' },
      about(103, 2, 7),
      about(104, 2, 8),
      about(105, 1, 7),
    ];
    queue.add([mine, updated, yours, alien, later]);
    expect([started(queue), queue.waitingCount]).toEqual([[101, 102], 3]);
    queue.finishAttempt(updated, 'success', 5, true);
    expect(started(queue)).toEqual([]);
    queue.finishAttempt(mine, 'success', 5, true);
    expect(started(queue)).toEqual([103]);
    queue.finishAttempt(yours, 'success', 5, true);
    expect([started(queue), queue.waitingCount]).toEqual([[104, 105], 0]);
  });

  it('keeps events about nobody in one order, and makes nobody else wait', () => {
    const queue = createWideQueue();
    const about = (id: number, stream: string) => ({ ...first(id, 0), stream });
    const [card, reward, stamp] = [about(101, 'card-4'), about(102, 'reward-9'), first(103, 31)];
    queue.add([card, reward, stamp]);
    expect(started(queue)).toEqual([101, 103]);
    queue.finishAttempt(stamp, 'success', 5, true);
    expect(started(queue)).toEqual([]);
    queue.finishAttempt(card, 'error', 5, true);
    expect(started(queue)).toEqual([102]);
  });

  it('waits for what was under way before the queue was lost', () => {
    const lost = createWideQueue();
    const [a1, a2] = [first(101, 1), first(102, 1)];
    lost.add([a1]);
    expect(started(lost)).toEqual([101]);
    const queue = new DeliveryQueue<QueuedDelivery>(7, 'fast', 0, lost);
    queue.add([a2]);
    expect([started(queue), queue.waitingCount]).toEqual([[], 1]);
    queue.removeInherited(a1);
    queue.removeInherited(a1);
    expect([started(queue), queue.waitingCount]).toEqual([[102], 0]);
  });

  it('holds back neither retries nor redeliveries', () => {
    const queue = createWideQueue();
    queue.add([first(101, 1), first(102, 1), again(50, 1), redelivery(105, 1)]);
    expect(started(queue).sort((a, b) => a - b)).toEqual([50, 101, 105]);
  });

  it('alternates between first attempts and retries, so that neither starves the other', () => {
    const queue = createWideQueue();
    queue.add([again(1, 1), again(2, 2), again(3, 3), first(11, 11), first(12, 12), first(13, 13)]);
    const order = started(queue).map((id) => (id > 10 ? 'first' : 'again'));
    expect(order.slice(0, 4).sort()).toEqual(['again', 'again', 'first', 'first']);
  });

  it('drops what has not begun, whatever it waited for', () => {
    const queue = createWideQueue();
    const a1 = first(101, 1);
    queue.add([a1, first(102, 1), first(103, 2), again(9, 3)]);
    expect(queue.startNext()?.id).toBeDefined();
    dropAll(queue);
    expect(queue.waitingCount).toBe(0);
    expect(queue.startNext()).toBeUndefined();
  });

  it('drops what waits for an attempt under way, and lets its customer begin anew after that', () => {
    const queue = createWideQueue();
    const a1 = first(101, 1);
    queue.add([a1, first(102, 1), first(103, 1)]);
    expect(started(queue)).toEqual([101]);
    queue.add([first(104, 2), again(9, 3)]);
    dropAll(queue);
    expect(queue.waitingCount).toBe(0);
    queue.add([first(105, 1)]);
    expect([started(queue), queue.waitingCount]).toEqual([[], 1]);
    dropAll(queue);
    queue.skip(a1);
    expect([started(queue), queue.waitingCount]).toEqual([[], 0]);
    queue.add([first(106, 1)]);
    expect(started(queue)).toEqual([106]);
  });

  it('drops what may go again but has not begun, and forgets that its customer is busy', () => {
    const queue = createWideQueue();
    const a1 = first(101, 1);
    queue.add([a1, first(102, 1), first(103, 1)]);
    expect(started(queue)).toEqual([101]);
    queue.skip(a1);
    expect(queue.waitingCount).toBe(2);
    dropAll(queue);
    expect(queue.waitingCount).toBe(0);
    queue.add([first(104, 1)]);
    expect(started(queue)).toEqual([104]);
  });

  it("lets the customer's next delivery go when one is over without an attempt", () => {
    const queue = createWideQueue();
    const a1 = first(101, 1);
    queue.add([a1, first(102, 1)]);
    expect(started(queue)).toEqual([101]);
    queue.skip(a1);
    expect(started(queue)).toEqual([102]);
  });
});

describe('how many at once', () => {
  it('is never more than it may be', () => {
    const narrow = create();
    narrow.add([first(1, 1), first(2, 2), again(3, 3)]);
    expect(started(narrow)).toHaveLength(1);
    const wide = createWideQueue();
    wide.add(Array.from({ length: 20 }, (_, i) => first(101 + i, 101 + i)));
    expect([started(wide).length, wide.waitingCount]).toEqual([16, 4]);
  });

  it('grows for a known backlog that takes longer than a second', () => {
    for (const [milliseconds, concurrency] of [
      [500, 1],
      [501, 2],
    ] as const) {
      const queue = create();
      queue.hasMore = false;
      queue.add([first(1, 1), first(2, 2), again(3, 3)]);
      const startedDelivery = queue.startNext();
      if (startedDelivery) queue.finishAttempt(startedDelivery, 'success', milliseconds, true);
      expect(queue.concurrency).toBe(concurrency);
    }
  });

  it('begins with one, and grows by one with each success while there is more to do', () => {
    const queue = create();
    expect(queue.concurrency).toBe(1);
    for (let id = 1; id <= 3; id++) respond(queue, first(id, id), 'success');
    expect(queue.concurrency).toBe(4);
    for (let id = 4; id <= 40; id++) respond(queue, first(id, id), 'success');
    expect(queue.concurrency).toBe(16);
  });

  it('stays as it is when nothing waits, or the process has no capacity left', () => {
    const queue = create();
    queue.hasMore = false;
    respond(queue, first(1, 1), 'success');
    expect(queue.concurrency).toBe(1);
    queue.hasMore = true;
    queue.add([first(2, 2)]);
    const next = queue.startNext();
    if (next) queue.finishAttempt(next, 'success', 5, false);
    expect(queue.concurrency).toBe(1);
  });

  it.each([
    ['overload', 8],
    ['silence', 8],
    ['error', 16],
  ] as [Signal, number][])('after %s it is %i of 16', (signal, concurrency) => {
    const queue = createWideQueue();
    respond(queue, first(101, 1), signal);
    expect(queue.concurrency).toBe(concurrency);
  });
});

describe('the tier', () => {
  it.each([
    [['success'], 5, 'fast'],
    [['success'], 2_500, 'slow'],
    [['error', 'overload'], 5, 'fast'],
    [['silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence', 'silence'], 5, 'probe'],
    [['silence', 'silence', 'silence', 'silence', 'silence', 'success'], 5, 'fast'],
  ] as [Signal[], number, string][])('after %j in %i ms is %s', (signals, milliseconds, tier) => {
    const queue = create();
    signals.forEach((signal, i) => respond(queue, first(i, i), signal, milliseconds));
    expect(queue.tier).toBe(tier);
  });

  it('is what the queue begins with', () => {
    expect(create().tier).toBe('fast');
    expect(create('slow').tier).toBe('slow');
  });

  it('forgets a slow response over the next ones', () => {
    const queue = create();
    const paces = [5_000, 5, 5, 5, 5, 5].map((milliseconds, i) => {
      respond(queue, first(i, i), 'success', milliseconds);
      return queue.tier;
    });
    expect(paces).toEqual(['slow', 'slow', 'slow', 'slow', 'slow', 'fast']);
  });

  it('of a probe is one at a time, whatever it was before', () => {
    const queue = createWideQueue();
    for (let id = 101; id <= 105; id++) respond(queue, first(id, id), 'silence');
    expect(queue.concurrency).toBe(1);
  });
});

const target: Target = {
  url: 'https://receiver.example/',
  secret: 'whsec_AA==',
  previousSecret: undefined,
  headers: undefined,
  personalData: true,
  enabled: true,
  disabledReason: null,
  giveUpBefore: null,
  failingSince: null,
};
const view = (more: Partial<QueueView> = {}): QueueView => ({
  subscriptionId: 7,
  enqueuedCount: 3,
  hasRedelivery: false,
  target,
  ...more,
});

/** A queue that knows these deliveries, as of time 0. */
function createQueue(...deliveries: QueuedDelivery[]): DeliveryQueue<QueuedDelivery> {
  const queue = create();
  queue.applyView(view(), 0);
  queue.hasMore = false;
  queue.add(deliveries);
  return queue;
}

/** Begins the next one, as an attempt does. */
function begin(queue: DeliveryQueue<QueuedDelivery>): QueuedDelivery {
  const delivery = queue.startNext();
  if (!delivery) throw new Error('nothing may be sent');
  return delivery;
}

function recorded(queue: DeliveryQueue<QueuedDelivery>, delivery: QueuedDelivery, now = 0): void {
  queue.finishAttempt(delivery, 'success', 5, true);
  queue.remove(delivery, now);
}

describe('what the queue shows', () => {
  it('is new once: not while it is known, under way or unrecorded', () => {
    const queue = createQueue();
    expect(queue.isNew(first(1))).toBe(true);
    queue.add([first(1)]);
    expect(queue.isNew(first(1))).toBe(false);
    const delivery = begin(queue);
    expect(queue.isNew(first(1))).toBe(false);
    queue.finishAttempt(delivery, 'success', 5, true);
    expect(queue.isNew(first(1))).toBe(false);
    queue.remove(delivery, 0);
    expect(queue.isNew(first(1))).toBe(true);
  });

  it('is not new when it was recorded while the queue was being asked', () => {
    const queue = createQueue(again(1));
    queue.requestLoad(64, 128);
    const delivery = begin(queue);
    recorded(queue, delivery);
    expect(queue.isNew(again(1))).toBe(false);
    queue.endLoad();
    expect(queue.isNew(again(1))).toBe(true);
  });

  it('is not new when it was asked for and recorded while the queue was being asked', () => {
    const queue = createQueue(redelivery(1, 5));
    queue.requestLoad(64, 128);
    const delivery = begin(queue);
    recorded(queue, delivery);
    expect(queue.isNew(redelivery(1, 5))).toBe(false);
    expect(queue.isNew(redelivery(1, 6))).toBe(true);
    expect(queue.isNew(again(1))).toBe(true);
    queue.endLoad();
    expect(queue.isNew(redelivery(1, 5))).toBe(true);
  });

  it('is identified by its request if it was asked for, whatever became of the delivery', () => {
    const queue = createQueue(redelivery(1, 5));
    expect(queue.isNew(redelivery(1, 5))).toBe(false);
    expect(queue.isNew(redelivery(1, 6))).toBe(true);
    expect(queue.isNew(first(1))).toBe(true);
  });

  it('is too old when it was made before the last end, unless it was asked for', () => {
    const queue = createQueue();
    const before = new Date(AT.getTime() + 1);
    queue.applyView(view({ target: { ...target, giveUpBefore: before } }), 0);
    expect(queue.findCutoff(first(1))).toEqual(before);
    expect(queue.findCutoff(redelivery(1, 5))).toBeUndefined();
    queue.applyView(view({ target: { ...target, giveUpBefore: AT } }), 0);
    expect(queue.findCutoff(first(1))).toBeUndefined();
  });
});

describe('asking for more', () => {
  it('continues after the last first attempt, and from the beginning when the queue is idle', () => {
    const queue = createQueue();
    queue.isNew(first(9));
    queue.isNew(again(12));
    queue.add([first(9)]);
    expect(queue.requestLoad(64, 128)).toEqual({
      subscriptionId: 7,
      after: 9,
      room: 64,
      skip: 1,
      state: 'active',
    });
    recorded(queue, begin(queue));
    expect(queue.requestLoad(64, 128)).toEqual({
      subscriptionId: 7,
      after: 0,
      room: 64,
      skip: 0,
      state: 'active',
    });
  });

  it('skips a bounded number of those that are held', () => {
    expect(createQueue(first(1), first(2), first(3)).requestLoad(64, 2).skip).toBe(2);
  });

  it('is for queues with room that stay', () => {
    const queue = createQueue(first(1));
    expect([queue.requestLoad(2, 128).room, queue.requestLoad(1, 128).room]).toEqual([2, 0]);
    queue.interrupt('draining');
    expect(queue.requestLoad(2, 128).room).toBe(0);
  });

  it('brings nothing to a queue that was interrupted meanwhile', () => {
    const queue = createQueue();
    const request = queue.requestLoad(64, 128);
    queue.backOff();
    expect(queue.isAsOf(request)).toBe(true);
    queue.interrupt('uncertain');
    expect(queue.isAsOf(request)).toBe(false);
    const reread = createQueue();
    reread.interrupt('rereading');
    const first = reread.requestLoad(64, 128);
    expect(reread.isAsOf(first)).toBe(true);
    reread.interrupt('rereading');
    expect(reread.isAsOf(first)).toBe(false);
  });

  it('finds out whether there is more', () => {
    const queue = createQueue(first(1));
    queue.requestLoad(4, 128);
    queue.updateHasMore({ firsts: 4, retries: 0 }, 4, false);
    expect(queue.hasMore).toBe(true);
    queue.updateHasMore({ firsts: 3, retries: 4 }, 4, false);
    expect(queue.hasMore).toBe(false);
    queue.updateHasMore({ firsts: 0, retries: 5 }, 4, false);
    expect(queue.hasMore).toBe(true);
    queue.updateHasMore({ firsts: 0, retries: 0 }, 4, true);
    expect(queue.hasMore).toBe(true);
  });

  it('finds more retries although those that came with the response are held by now', () => {
    const queue = createQueue();
    queue.requestLoad(4, 128);
    queue.add([again(1), again(2), again(3), again(4)]);
    queue.updateHasMore({ firsts: 0, retries: 4 }, 4, false);
    expect(queue.hasMore).toBe(true);
  });

  it('finds more retries although more are held than one question skips, unless it brought no others', () => {
    const queue = createQueue(again(1), again(2), again(3));
    queue.requestLoad(4, 2);
    queue.updateHasMore({ firsts: 0, retries: 6 }, 4, false);
    expect(queue.hasMore).toBe(true);
    // Sent, but not recorded yet.
    for (let i = 1; i <= 3; i++) queue.finishAttempt(begin(queue), 'success', 5, true);
    queue.requestLoad(4, 2);
    queue.updateHasMore({ firsts: 0, retries: 6 }, 4, false);
    expect(queue.hasMore).toBe(false);
  });
});

describe('a queue whose subscription an attempt has ended', () => {
  it('sends nothing until that is recorded, and then read from its beginning', () => {
    const queue = createQueue(first(1), first(2), first(3));
    const delivery = begin(queue);
    queue.interrupt('ending');
    expect([queue.waitingCount, queue.canSend]).toEqual([0, false]);
    expect(queue.requestLoad(64, 128).room).toBe(0);
    recorded(queue, delivery);
    queue.markEndRecorded();
    expect([queue.canSend, queue.state]).toEqual([false, 'rereading']);
    expect(queue.requestLoad(64, 128)).toMatchObject({ after: 0, room: 64 });
    queue.activate();
    expect(queue.canSend).toBe(true);
  });

  it('forgets what was dropped, so that a resume brings it again', () => {
    const queue = createQueue(first(1), first(2));
    begin(queue);
    queue.interrupt('ending');
    expect([queue.isNew(first(1)), queue.isNew(first(2))]).toEqual([false, true]);
  });
});

describe('a queue of which something could not be read', () => {
  it('sends nothing until all of it has been read again', () => {
    const queue = createQueue(first(1), first(2), first(3));
    const delivery = begin(queue);
    queue.interrupt('rereading');
    expect([queue.waitingCount, queue.canSend]).toEqual([0, false]);
    recorded(queue, delivery);
    expect(queue.requestLoad(64, 128).after).toBe(0);
    expect([1, 2, 3].map((id) => queue.isNew(first(id)))).toEqual([true, true, true]);
  });
});

describe('a queue that was lost with attempts under way', () => {
  it('does not make them twice when it comes back', () => {
    const before = createQueue(first(1), first(2));
    const delivery = begin(before);
    before.interrupt('lost');
    const back = new DeliveryQueue<QueuedDelivery>(7, 'slow', 0, before);
    expect([before.canSend, before.hasUnrecorded]).toEqual([false, true]);
    expect([back.isNew(first(1)), back.isNew(first(2))]).toEqual([false, true]);
    before.remove(delivery, 0);
    back.removeInherited(delivery);
    expect([back.isNew(first(1)), before.hasUnrecorded]).toEqual([true, false]);
  });
});

describe('sending', () => {
  it.each(['uncertain', 'rereading', 'ending', 'draining', 'lost'] as const)(
    'stops while the queue is %s',
    (by) => {
      const queue = createQueue(first(1));
      expect(queue.canSend).toBe(true);
      queue.interrupt(by);
      expect(queue.canSend).toBe(false);
    },
  );

  it('stops when the subscription is paused', () => {
    const queue = createQueue(first(1));
    queue.suspend('paused');
    expect([queue.waitingCount, queue.canSend]).toEqual([0, false]);
  });

  it('continues with what is known when one delivery could not be processed', () => {
    const queue = createQueue(first(1));
    queue.backOff();
    expect([queue.state, queue.canSend]).toEqual(['backing-off', true]);
  });

  it('continues once a queue whose lease was in doubt is shown to be ours', () => {
    const queue = createQueue(first(1));
    queue.interrupt('uncertain');
    queue.requestLoad(64, 128);
    expect(queue.canSend).toBe(false);
    queue.activate();
    expect([queue.canSend, queue.waitingCount]).toEqual([true, 1]);
  });
});

describe('an interruption', () => {
  it.each<[Interruption, Interruption, QueueState]>([
    ['rereading', 'uncertain', 'rereading'],
    ['ending', 'uncertain', 'ending'],
    ['ending', 'rereading', 'ending'],
    ['draining', 'ending', 'draining'],
    ['draining', 'rereading', 'draining'],
    ['lost', 'draining', 'lost'],
    ['uncertain', 'rereading', 'rereading'],
    ['rereading', 'ending', 'ending'],
    ['ending', 'draining', 'draining'],
    ['draining', 'lost', 'lost'],
  ])('%s, then %s, makes it %s', (one, another, state) => {
    const queue = createQueue();
    queue.interrupt(one);
    queue.interrupt(another);
    expect(queue.state).toBe(state);
  });

  it('ends a back-off and a pause', () => {
    const [resting, paused] = [createQueue(), createQueue()];
    resting.backOff();
    paused.suspend('paused');
    for (const queue of [resting, paused]) queue.interrupt('uncertain');
    expect([resting.state, paused.state]).toEqual(['uncertain', 'uncertain']);
  });
});

describe('releasing', () => {
  it('waits until nothing is known, in flight or unrecorded, and a little longer', () => {
    const queue = createQueue(first(1));
    const canBeReleased = (now: number) => queue.canBeReleased(now, 1_000, false);
    expect(canBeReleased(9_000)).toBe(false);
    const delivery = begin(queue);
    expect(canBeReleased(9_000)).toBe(false);
    queue.finishAttempt(delivery, 'success', 5, true);
    expect(canBeReleased(9_000)).toBe(false);
    queue.remove(delivery, 8_500);
    expect(canBeReleased(9_000)).toBe(false);
    expect(canBeReleased(9_501)).toBe(true);
  });

  it('comes at once when the queue is drained, paused or backs off', () => {
    const [draining, paused, resting] = [createQueue(), createQueue(), createQueue()];
    draining.interrupt('draining');
    paused.suspend('paused');
    resting.backOff();
    for (const queue of [draining, paused, resting]) {
      expect(queue.canBeReleased(1, 1_000, false)).toBe(true);
    }
  });

  it('does not come while a statement about it runs, nor while there is more', () => {
    for (const operation of ['loading', 'failing', 'releasing', 'reclaimed'] as const) {
      const queue = createQueue();
      queue.operation = operation;
      expect(queue.canBeReleased(9_000, 1_000, false)).toBe(false);
    }
    const more = createQueue();
    more.hasMore = true;
    expect(more.canBeReleased(9_000, 1_000, false)).toBe(false);
    expect(createQueue().canBeReleased(9_000, 1_000, true)).toBe(false);
  });
});

describe('failing what is pending', () => {
  it('is over when nothing is left, unless the queue was interrupted', () => {
    const queue = createQueue();
    queue.suspend('giving-up');
    queue.endFailing(false);
    expect(queue.state).toBe('giving-up');
    queue.endFailing(true);
    expect(queue.state).toBe('given-up');
    queue.activate();
    queue.endFailing(true);
    expect(queue.state).toBe('active');
  });
});
