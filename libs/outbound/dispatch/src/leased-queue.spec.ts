import { describe, expect, it } from '@jest/globals';
import { LeasedQueue, type QueueView, type Target } from './leased-queue.js';

type Item = Parameters<LeasedQueue<ReturnType<typeof firstAttempt>>['isNew']>[0];

const AT = new Date('2026-03-01T12:00:00.000Z');

const firstAttempt = (id: number, customerId = id) => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
  redeliveryId: 0,
  createdAt: AT,
});
const retry = (id: number) => ({ ...firstAttempt(id), tries: 1 });
const redelivery = (id: number, redeliveryId: number) => ({
  ...firstAttempt(id),
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

/** Creates a queue that knows these deliveries, as of time 0. */
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

function record(queue: LeasedQueue<Item>, delivery: Item, now = 0): void {
  queue.deliveries.finishAttempt(delivery, 'success', 5, true);
  queue.settle(delivery, now);
}

describe('LeasedQueue.isNew', () => {
  it('is false for a first attempt that is waiting, in flight or unrecorded', () => {
    const queue = createQueue();
    expect(queue.isNew(firstAttempt(1))).toBe(true);
    queue.add([firstAttempt(1)]);
    expect(queue.isNew(firstAttempt(1))).toBe(false);
    const delivery = begin(queue);
    expect(queue.isNew(firstAttempt(1))).toBe(false);
    queue.deliveries.finishAttempt(delivery, 'success', 5, true);
    expect(queue.isNew(firstAttempt(1))).toBe(false);
    queue.settle(delivery, 0);
    expect(queue.isNew(firstAttempt(1))).toBe(true);
  });

  it('is false for a retry that was recorded while the queue was being read', () => {
    const queue = createQueue(retry(1));
    queue.createRefillRequest(64, 128);
    const delivery = begin(queue);
    record(queue, delivery);
    queue.rememberRecorded(delivery);
    expect(queue.isNew(retry(1))).toBe(false);
    queue.endRefill();
    expect(queue.isNew(retry(1))).toBe(true);
  });

  it('is false for a redelivery that was recorded while the queue was being read', () => {
    const queue = createQueue(redelivery(1, 5));
    queue.createRefillRequest(64, 128);
    const delivery = begin(queue);
    record(queue, delivery);
    queue.rememberRecorded(delivery);
    expect(queue.isNew(redelivery(1, 5))).toBe(false);
    expect(queue.isNew(redelivery(1, 6))).toBe(true);
    expect(queue.isNew(retry(1))).toBe(true);
    queue.endRefill();
    expect(queue.isNew(redelivery(1, 5))).toBe(true);
  });

  it('identifies a redelivery by its request, apart from the delivery and other requests', () => {
    const queue = createQueue(redelivery(1, 5));
    expect(queue.isNew(redelivery(1, 5))).toBe(false);
    expect(queue.isNew(redelivery(1, 6))).toBe(true);
    expect(queue.isNew(firstAttempt(1))).toBe(true);
  });
});

describe('LeasedQueue.findCutoff', () => {
  it('returns giveUpBefore for an older delivery, but not for a redelivery', () => {
    const queue = createQueue();
    const before = new Date(AT.getTime() + 1);
    queue.applyView(view({ target: { ...target, giveUpBefore: before } }), 0);
    expect(queue.findCutoff(firstAttempt(1))).toEqual(before);
    expect(queue.findCutoff(redelivery(1, 5))).toBeUndefined();
    queue.applyView(view({ target: { ...target, giveUpBefore: AT } }), 0);
    expect(queue.findCutoff(firstAttempt(1))).toBeUndefined();
  });
});

describe('LeasedQueue.createRefillRequest', () => {
  it('continues after the last first attempt, and starts from the beginning when the queue is idle', () => {
    const queue = createQueue();
    queue.isNew(firstAttempt(9));
    queue.isNew(retry(12));
    queue.add([firstAttempt(9)]);
    expect(queue.createRefillRequest(64, 128)).toEqual({
      subscriptionId: 7,
      after: 9,
      room: 64,
      skip: 1,
    });
    record(queue, begin(queue));
    expect(queue.createRefillRequest(64, 128)).toEqual({
      subscriptionId: 7,
      after: 0,
      room: 64,
      skip: 0,
    });
  });

  it('skips at most the given number of held deliveries', () => {
    expect(
      createQueue(firstAttempt(1), firstAttempt(2), firstAttempt(3)).createRefillRequest(64, 2)
        .skip,
    ).toBe(2);
  });
});

describe('LeasedQueue.canRefill', () => {
  it('is true while the queue has room and is not draining', () => {
    const queue = createQueue(firstAttempt(1));
    expect([queue.canRefill(2), queue.canRefill(1)]).toEqual([true, false]);
    queue.isDraining = true;
    expect(queue.canRefill(2)).toBe(false);
  });
});

describe('LeasedQueue.updateHasMore', () => {
  it('sets hasMore for as many first attempts or retries as requested, or outdated deliveries', () => {
    const queue = createQueue(firstAttempt(1));
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

  it('sets hasMore for as many retries as requested, although those in the result are held by now', () => {
    const queue = createQueue();
    queue.createRefillRequest(4, 128);
    queue.add([retry(1), retry(2), retry(3), retry(4)]);
    queue.updateHasMore({ firsts: 0, retries: 4 }, 4, false);
    expect(queue.deliveries.hasMore).toBe(true);
  });

  it('sets hasMore when more retries are held than a request skips, but not when none waits', () => {
    const queue = createQueue(retry(1), retry(2), retry(3));
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

describe('LeasedQueue.close', () => {
  it('stops sending until the end of the subscription is recorded and read back', () => {
    const queue = createQueue(firstAttempt(1), firstAttempt(2), firstAttempt(3));
    const delivery = begin(queue);
    expect(queue.close()).toBe(2);
    expect([queue.canSend, queue.isClosing, queue.awaitsView]).toEqual([false, true, false]);
    record(queue, delivery);
    queue.markClosed();
    expect([queue.canSend, queue.isClosing, queue.awaitsView]).toEqual([false, true, true]);
    queue.reopen();
    expect([queue.canSend, queue.isClosing]).toEqual([true, false]);
  });

  it('forgets the dropped deliveries, so that they are new after a resume', () => {
    const queue = createQueue(firstAttempt(1), firstAttempt(2));
    begin(queue);
    queue.close();
    expect([queue.isNew(firstAttempt(1)), queue.isNew(firstAttempt(2))]).toEqual([false, true]);
  });
});

describe('LeasedQueue.startOver', () => {
  it('stops sending until the queue is read again from its beginning', () => {
    const queue = createQueue(firstAttempt(1), firstAttempt(2), firstAttempt(3));
    const delivery = begin(queue);
    expect(queue.startOver()).toBe(2);
    record(queue, delivery);
    expect([queue.canSend, queue.awaitsView]).toEqual([false, true]);
    queue.reopen();
    expect(queue.canSend).toBe(true);
    expect(queue.createRefillRequest(64, 128).after).toBe(0);
    expect([1, 2, 3].map((id) => queue.isNew(firstAttempt(id)))).toEqual([true, true, true]);
  });

  it('awaits no view while the end of the subscription is unrecorded', () => {
    const queue = createQueue(firstAttempt(1), firstAttempt(2));
    begin(queue);
    queue.close();
    queue.startOver();
    expect(queue.awaitsView).toBe(false);
  });
});

describe('a leased queue that was lost with an attempt in flight', () => {
  it('does not make that attempt twice when it is leased again', () => {
    const lostQueue = createQueue(firstAttempt(1), firstAttempt(2));
    const delivery = begin(lostQueue);
    lostQueue.drop();
    lostQueue.isLost = true;
    const newQueue = new LeasedQueue<Item>(7, 'slow', 0, lostQueue);
    expect(lostQueue.canSend).toBe(false);
    expect([newQueue.isNew(firstAttempt(1)), newQueue.isNew(firstAttempt(2))]).toEqual([
      false,
      true,
    ]);
    lostQueue.settle(delivery, 0);
    expect(newQueue.isNew(firstAttempt(1))).toBe(true);
  });
});

describe('LeasedQueue.canSend', () => {
  it.each([
    ['is draining', (queue: LeasedQueue<Item>) => (queue.isDraining = true)],
    ['is lost', (queue: LeasedQueue<Item>) => (queue.isLost = true)],
    ['is paused', (queue: LeasedQueue<Item>) => (queue.hold = 'paused')],
  ])('is false when the queue %s', (_, change) => {
    const queue = createQueue(firstAttempt(1));
    expect(queue.canSend).toBe(true);
    change(queue);
    expect(queue.canSend).toBe(false);
  });

  it('stays true during a backoff', () => {
    const queue = createQueue(firstAttempt(1));
    queue.hold = 'backoff';
    expect(queue.canSend).toBe(true);
  });
});

describe('LeasedQueue.canBeReleased', () => {
  it('is false until nothing is waiting, in flight or unrecorded, and for a linger time after that', () => {
    const queue = createQueue(firstAttempt(1));
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    const delivery = begin(queue);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.deliveries.finishAttempt(delivery, 'success', 5, true);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.settle(delivery, 8_500);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    expect(queue.canBeReleased(9_501, 1_000)).toBe(true);
  });

  it('is true at once when the queue is draining or held', () => {
    const drainingQueue = createQueue();
    drainingQueue.isDraining = true;
    const heldQueue = createQueue();
    heldQueue.hold = 'backoff';
    expect([drainingQueue, heldQueue].map((queue) => queue.canBeReleased(1, 1_000))).toEqual([
      true,
      true,
    ]);
  });

  it('is false while the queue is being filled, needs a refill or has more', () => {
    const refillingQueue = createQueue();
    refillingQueue.operation = 'filling';
    const queueToRefill = createQueue();
    queueToRefill.needsRefill = true;
    const queueWithMore = createQueue();
    queueWithMore.deliveries.hasMore = true;
    for (const queue of [refillingQueue, queueToRefill, queueWithMore]) {
      expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    }
  });
});

describe('a leased queue whose lease was not renewed', () => {
  it('sends nothing until the next view of it', () => {
    const queue = createQueue(firstAttempt(1));
    expect(queue.canSend).toBe(true);
    queue.isLeaseUncertain = true;
    expect(queue.canSend).toBe(false);
    queue.applyView(view(), 5);
    expect(queue.canSend).toBe(true);
  });
});

describe('LeasedQueue.endGivingUp', () => {
  it('lets the queue be released, and is reported once', () => {
    const queue = createQueue();
    queue.isGivingUp = true;
    expect(queue.canBeReleased(9_000, 1_000)).toBe(false);
    queue.endGivingUp(true);
    expect(queue.canBeReleased(9_000, 1_000)).toBe(true);
    expect([queue.takeGivenUp(), queue.takeGivenUp()]).toEqual([true, false]);
    queue.endGivingUp(false);
    expect(queue.takeGivenUp()).toBe(false);
  });

  it('is not reported once the subscription was enabled again', () => {
    const queue = createQueue();
    queue.endGivingUp(true);
    queue.applyView(view(), 5);
    queue.applyView(view({ target: undefined }), 10);
    expect(queue.takeGivenUp()).toBe(false);
  });
});
