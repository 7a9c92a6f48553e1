import { describe, expect, it } from '@jest/globals';
import { LeasedQueue, type QueueView, type Target } from './leased-queue.js';

type Item = Parameters<LeasedQueue<ReturnType<typeof first>>['isNew']>[0];

const AT = new Date('2026-03-01T12:00:00.000Z');

const first = (id: number, customerId = id) => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
  redeliveryId: 0,
  createdAt: AT,
});
const again = (id: number) => ({ ...first(id), tries: 1 });
const redelivery = (id: number, redeliveryId: number) => ({
  ...first(id),
  manual: true,
  redeliveryId,
});

const target: Target = {
  url: 'https://receiver.example/',
  secret: 'whsec_AA==',
  previousSecret: undefined,
  enabled: true,
  disabledReason: null,
  giveUpBefore: null,
  failingSince: null,
};
const view = (more: Partial<QueueView> = {}): QueueView => ({
  subscriptionId: 7,
  enqueued: 3,
  hasRedelivery: false,
  target,
  ...more,
});

/** A queue that knows these deliveries, as of time 0. */
function createQueue(...deliveries: Item[]): LeasedQueue<Item> {
  const queue = new LeasedQueue<Item>(7, 'fast', 0);
  queue.applyView(view(), 0);
  queue.deliveries.hasMore = false;
  queue.add(deliveries);
  return queue;
}

/** Begins the next one, as an attempt does. */
function begin(queue: LeasedQueue<Item>): Item {
  const delivery = queue.deliveries.next();
  if (!delivery) throw new Error('nothing may be sent');
  queue.begin();
  return delivery;
}

function recorded(queue: LeasedQueue<Item>, delivery: Item, now = 0): void {
  queue.deliveries.finishAttempt(delivery, 'success', 5, true);
  queue.settle(delivery, now);
}

describe('what the queue shows', () => {
  it('is new once: not while it is known, under way or unrecorded', () => {
    const queue = createQueue();
    expect(queue.isNew(first(1))).toBe(true);
    queue.add([first(1)]);
    expect(queue.isNew(first(1))).toBe(false);
    const delivery = begin(queue);
    expect(queue.isNew(first(1))).toBe(false);
    queue.deliveries.finishAttempt(delivery, 'success', 5, true);
    expect(queue.isNew(first(1))).toBe(false);
    queue.settle(delivery, 0);
    expect(queue.isNew(first(1))).toBe(true);
  });

  it('is not new when it was recorded while the queue was being asked', () => {
    const queue = createQueue(again(1));
    queue.createRefillRequest(64, 128);
    const delivery = begin(queue);
    recorded(queue, delivery);
    queue.rememberRecorded(delivery);
    expect(queue.isNew(again(1))).toBe(false);
    queue.endRefill();
    expect(queue.isNew(again(1))).toBe(true);
  });

  it('is not new when it was asked for and recorded while the queue was being asked', () => {
    const queue = createQueue(redelivery(1, 5));
    queue.createRefillRequest(64, 128);
    const delivery = begin(queue);
    recorded(queue, delivery);
    queue.rememberRecorded(delivery);
    expect(queue.isNew(redelivery(1, 5))).toBe(false);
    expect(queue.isNew(redelivery(1, 6))).toBe(true);
    expect(queue.isNew(again(1))).toBe(true);
    queue.endRefill();
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
    expect(queue.createRefillRequest(64, 128)).toEqual({
      subscriptionId: 7,
      after: 9,
      room: 64,
      skip: 1,
    });
    recorded(queue, begin(queue));
    expect(queue.createRefillRequest(64, 128)).toEqual({
      subscriptionId: 7,
      after: 0,
      room: 64,
      skip: 0,
    });
  });

  it('skips a bounded number of those that are held', () => {
    expect(createQueue(first(1), first(2), first(3)).createRefillRequest(64, 2).skip).toBe(2);
  });

  it('is for queues with room that stay', () => {
    const queue = createQueue(first(1));
    expect([queue.canRefill(2), queue.canRefill(1)]).toEqual([true, false]);
    queue.isDraining = true;
    expect(queue.canRefill(2)).toBe(false);
  });

  it('finds out whether there is more', () => {
    const queue = createQueue(first(1));
    queue.createRefillRequest(4, 128);
    queue.updateHasMore({ firsts: 4, retries: 0 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(true);
    queue.updateHasMore({ firsts: 3, retries: 4 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(false);
    queue.updateHasMore({ firsts: 0, retries: 5 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(true);
    queue.updateHasMore({ firsts: 0, retries: 0 }, 4, true);
    expect(queue.deliveries.hasMore).toBe(true);
  });

  it('finds more retries although those that came with the answer are held by now', () => {
    const queue = createQueue();
    queue.createRefillRequest(4, 128);
    queue.add([again(1), again(2), again(3), again(4)]);
    queue.updateHasMore({ firsts: 0, retries: 4 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(true);
  });

  it('finds more retries although more are held than one question skips, unless it brought no others', () => {
    const queue = createQueue(again(1), again(2), again(3));
    queue.createRefillRequest(4, 2);
    queue.updateHasMore({ firsts: 0, retries: 6 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(true);
    // Sent, but not recorded yet.
    for (let i = 1; i <= 3; i++) queue.deliveries.finishAttempt(begin(queue), 'success', 5, true);
    queue.createRefillRequest(4, 2);
    queue.updateHasMore({ firsts: 0, retries: 6 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(false);
  });
});

describe('a queue whose subscription an attempt has ended', () => {
  it('sends nothing until that is recorded, and then seen', () => {
    const queue = createQueue(first(1), first(2), first(3));
    const delivery = begin(queue);
    expect(queue.close()).toBe(2);
    expect([queue.canSend, queue.isClosing, queue.awaitsView]).toEqual([false, true, false]);
    recorded(queue, delivery);
    queue.markClosed();
    expect([queue.canSend, queue.isClosing, queue.awaitsView]).toEqual([false, true, true]);
    queue.reopen();
    expect([queue.canSend, queue.isClosing]).toEqual([true, false]);
  });

  it('forgets what was dropped, so that a resume brings it again', () => {
    const queue = createQueue(first(1), first(2));
    begin(queue);
    queue.close();
    expect([queue.isNew(first(1)), queue.isNew(first(2))]).toEqual([false, true]);
  });
});

describe('a queue of which something could not be read', () => {
  it('sends nothing until all of it has been read again', () => {
    const queue = createQueue(first(1), first(2), first(3));
    const delivery = begin(queue);
    expect(queue.startOver()).toBe(2);
    recorded(queue, delivery);
    expect([queue.canSend, queue.awaitsView]).toEqual([false, true]);
    queue.reopen();
    expect(queue.canSend).toBe(true);
    expect(queue.createRefillRequest(64, 128).after).toBe(0);
    expect([1, 2, 3].map((id) => queue.isNew(first(id)))).toEqual([true, true, true]);
  });

  it('still waits for its end to be recorded', () => {
    const queue = createQueue(first(1), first(2));
    begin(queue);
    queue.close();
    queue.startOver();
    expect(queue.awaitsView).toBe(false);
  });
});

describe('a queue that was lost with attempts under way', () => {
  it('does not make them twice when it comes back', () => {
    const before = createQueue(first(1), first(2));
    const delivery = begin(before);
    before.drop();
    before.isLost = true;
    const back = new LeasedQueue<Item>(7, 'slow', 0, before);
    expect(before.canSend).toBe(false);
    expect([back.isNew(first(1)), back.isNew(first(2))]).toEqual([false, true]);
    before.settle(delivery, 0);
    expect(back.isNew(first(1))).toBe(true);
  });
});

describe('sending', () => {
  it.each([
    ['leaves', (queue: LeasedQueue<Item>) => (queue.isDraining = true)],
    ['is lost', (queue: LeasedQueue<Item>) => (queue.isLost = true)],
    ['is paused', (queue: LeasedQueue<Item>) => (queue.hold = 'paused')],
  ])('stops when the queue %s', (_, change) => {
    const queue = createQueue(first(1));
    expect(queue.canSend).toBe(true);
    change(queue);
    expect(queue.canSend).toBe(false);
  });

  it('continues with what is known when one delivery could not be processed', () => {
    const queue = createQueue(first(1));
    queue.hold = 'backoff';
    expect(queue.canSend).toBe(true);
  });
});

describe('releasing', () => {
  it('waits until nothing is known, in flight or unrecorded, and a little longer', () => {
    const queue = createQueue(first(1));
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    const delivery = begin(queue);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.deliveries.finishAttempt(delivery, 'success', 5, true);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.settle(delivery, 8_500);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    expect(queue.canBeReleased(9_501, 1_000)).toBe(true);
  });

  it('comes at once when the queue leaves or is held', () => {
    const isDraining = createQueue();
    isDraining.isDraining = true;
    const pausedQueue = createQueue();
    pausedQueue.hold = 'backoff';
    expect([isDraining, pausedQueue].map((queue) => queue.canBeReleased(1, 1_000))).toEqual([
      true,
      true,
    ]);
  });

  it('does not come while a statement about it runs, nor while there is more', () => {
    const refillingQueue = createQueue();
    refillingQueue.operation = 'filling';
    const hungry = createQueue();
    hungry.needsRefill = true;
    const more = createQueue();
    more.deliveries.hasMore = true;
    for (const queue of [refillingQueue, hungry, more]) {
      expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    }
  });
});

describe('a queue whose lease was not renewed', () => {
  it('sends nothing until it is shown to be ours', () => {
    const queue = createQueue(first(1));
    expect(queue.canSend).toBe(true);
    queue.isLeaseUncertain = true;
    expect(queue.canSend).toBe(false);
    queue.applyView(view(), 5);
    expect(queue.canSend).toBe(true);
  });
});

describe('what is given up', () => {
  it('keeps a queue from being released, and is told once', () => {
    const queue = createQueue();
    queue.isGivingUp = true;
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.endGivingUp(true);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(true);
    expect([queue.takeGivenUp(), queue.takeGivenUp()]).toEqual([true, false]);
    queue.endGivingUp(false);
    expect(queue.takeGivenUp()).toBe(false);
  });

  it('is not all any more once the subscription was enabled again', () => {
    const queue = createQueue();
    queue.endGivingUp(true);
    queue.applyView(view(), 5);
    queue.applyView(view({ target: undefined }), 10);
    expect(queue.takeGivenUp()).toBe(false);
  });
});
