import { describe, expect, it } from '@jest/globals';
import { DeliveryQueue, type QueuedDelivery, type Signal } from './delivery-queue.js';

const first = (id: number, customerId: number): QueuedDelivery => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
});
const again = (id: number, customerId: number): QueuedDelivery => ({
  ...first(id, customerId),
  tries: 1,
});

/** Grown to its limit, so that only the order holds anything back. */
function createWideQueue(): DeliveryQueue<QueuedDelivery> {
  const queue = new DeliveryQueue();
  for (let id = 1; id <= 20; id++) answer(queue, first(id, id), 'success');
  return queue;
}

function answer(
  queue: DeliveryQueue<QueuedDelivery>,
  delivery: QueuedDelivery,
  signal: Signal,
  milliseconds = 5,
) {
  queue.add([delivery]);
  expect(queue.next()).toBe(delivery);
  queue.finishAttempt(delivery, signal, milliseconds, true);
}

function started(queue: DeliveryQueue<QueuedDelivery>): number[] {
  const ids: number[] = [];
  for (let next = queue.next(); next; next = queue.next()) ids.push(next.id);
  return ids;
}

describe('the order of a queue', () => {
  it('lets one first attempt a customer go at a time, in the order of the events', () => {
    const queue = createWideQueue();
    const [a1, a2, a3] = [first(101, 1), first(102, 1), first(104, 1)];
    queue.add([a1, a2, first(103, 2), a3]);
    expect(started(queue)).toEqual([101, 103]);
    expect(queue.waitingCount).toBe(2);
    queue.finishAttempt(a1, 'refusal', 5, true);
    expect(started(queue)).toEqual([102]);
    queue.finishAttempt(a2, 'success', 5, true);
    expect(started(queue)).toEqual([104]);
    queue.finishAttempt(a3, 'success', 5, true);
    expect(queue.waitingCount).toBe(0);
    expect(queue.inFlight).toBe(1);
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

  it('waits for what was under way before the queue was lost', () => {
    const lost = createWideQueue();
    const [a1, a2] = [first(101, 1), first(102, 1)];
    lost.add([a1]);
    expect(started(lost)).toEqual([101]);
    const queue = new DeliveryQueue('fast', lost);
    queue.add([a2]);
    expect([started(queue), queue.waitingCount, queue.inFlight]).toEqual([[], 1, 0]);
    queue.endElsewhere(a1);
    queue.endElsewhere(a1);
    expect([started(queue), queue.waitingCount, queue.inFlight]).toEqual([[102], 0, 1]);
  });

  it('holds back neither retries nor redeliveries', () => {
    const queue = createWideQueue();
    const redelivery = { ...first(105, 1), manual: true };
    queue.add([first(101, 1), first(102, 1), again(50, 1), redelivery]);
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
    expect(queue.next()?.id).toBeDefined();
    const rest = queue.clear();
    expect(rest.length + queue.inFlight).toBe(4);
    expect(queue.waitingCount).toBe(0);
    expect(queue.next()).toBeUndefined();
  });

  it('drops what waits for an attempt under way, and lets its customer begin anew after that', () => {
    const queue = createWideQueue();
    const a1 = first(101, 1);
    queue.add([a1, first(102, 1), first(103, 1)]);
    expect(started(queue)).toEqual([101]);
    queue.add([first(104, 2), again(9, 3)]);
    const dropped = queue.clear().map(({ id }) => id);
    expect(dropped.sort((a, b) => a - b)).toEqual([9, 102, 103, 104]);
    queue.add([first(105, 1)]);
    expect([started(queue), queue.clear().length]).toEqual([[], 1]);
    queue.skip(a1);
    expect([started(queue), queue.waitingCount, queue.inFlight]).toEqual([[], 0, 0]);
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
    expect(
      queue
        .clear()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([102, 103]);
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
    const narrow = new DeliveryQueue();
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
      const queue = new DeliveryQueue();
      queue.hasMore = false;
      queue.add([first(1, 1), first(2, 2), again(3, 3)]);
      const startedDelivery = queue.next();
      if (startedDelivery) queue.finishAttempt(startedDelivery, 'success', milliseconds, true);
      expect(queue.concurrency).toBe(concurrency);
    }
  });

  it('begins with one, and grows by one with each success while there is more to do', () => {
    const queue = new DeliveryQueue();
    expect(queue.concurrency).toBe(1);
    for (let id = 1; id <= 3; id++) answer(queue, first(id, id), 'success');
    expect(queue.concurrency).toBe(4);
    for (let id = 4; id <= 40; id++) answer(queue, first(id, id), 'success');
    expect(queue.concurrency).toBe(16);
  });

  it('stays as it is when nothing waits, or the process has no capacity left', () => {
    const queue = new DeliveryQueue();
    queue.hasMore = false;
    answer(queue, first(1, 1), 'success');
    expect(queue.concurrency).toBe(1);
    queue.hasMore = true;
    queue.add([first(2, 2)]);
    const next = queue.next();
    if (next) queue.finishAttempt(next, 'success', 5, false);
    expect(queue.concurrency).toBe(1);
  });

  it.each([
    ['overload', 8],
    ['silence', 8],
    ['refusal', 16],
  ] as [Signal, number][])('after %s it is %i of 16', (signal, concurrency) => {
    const queue = createWideQueue();
    answer(queue, first(101, 1), signal);
    expect(queue.concurrency).toBe(concurrency);
  });
});

describe('the tier', () => {
  it.each([
    [['success'], 5, 'fast'],
    [['success'], 2_500, 'slow'],
    [['refusal', 'overload'], 5, 'fast'],
    [['silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence', 'silence'], 5, 'probe'],
    [['silence', 'silence', 'silence', 'silence', 'silence', 'success'], 5, 'fast'],
  ] as [Signal[], number, string][])('after %j in %i ms is %s', (signals, milliseconds, tier) => {
    const queue = new DeliveryQueue();
    signals.forEach((signal, i) => answer(queue, first(i, i), signal, milliseconds));
    expect(queue.tier).toBe(tier);
  });

  it('is what the queue begins with', () => {
    expect(new DeliveryQueue().tier).toBe('fast');
    expect(new DeliveryQueue('slow').tier).toBe('slow');
  });

  it('forgets a slow answer over the next ones', () => {
    const queue = new DeliveryQueue();
    const paces = [5_000, 5, 5, 5, 5, 5].map((milliseconds, i) => {
      answer(queue, first(i, i), 'success', milliseconds);
      return queue.tier;
    });
    expect(paces).toEqual(['slow', 'slow', 'slow', 'slow', 'slow', 'fast']);
  });

  it('of a probe is one at a time, whatever it was before', () => {
    const queue = createWideQueue();
    for (let id = 101; id <= 105; id++) answer(queue, first(id, id), 'silence');
    expect(queue.concurrency).toBe(1);
  });
});
