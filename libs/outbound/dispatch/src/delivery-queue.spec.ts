import { describe, expect, it } from '@jest/globals';
import { DeliveryQueue, type QueuedDelivery, type Signal } from './delivery-queue.js';

const firstAttempt = (id: number, customerId: number): QueuedDelivery => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
});
const retry = (id: number, customerId: number): QueuedDelivery => ({
  ...firstAttempt(id, customerId),
  tries: 1,
});

/** Creates a queue of the maximum concurrency, so that only the order holds deliveries back. */
function createWideQueue(): DeliveryQueue<QueuedDelivery> {
  const queue = new DeliveryQueue();
  for (let id = 1; id <= 20; id++) attempt(queue, firstAttempt(id, id), 'success');
  return queue;
}

function attempt(
  queue: DeliveryQueue<QueuedDelivery>,
  delivery: QueuedDelivery,
  signal: Signal,
  milliseconds = 5,
) {
  queue.add([delivery]);
  expect(queue.next()).toBe(delivery);
  queue.finishAttempt(delivery, signal, milliseconds, true);
}

function startAll(queue: DeliveryQueue<QueuedDelivery>): number[] {
  const ids: number[] = [];
  for (let next = queue.next(); next; next = queue.next()) ids.push(next.id);
  return ids;
}

describe('DeliveryQueue', () => {
  it('lets one first attempt per customer go at a time, in the order of the events', () => {
    const queue = createWideQueue();
    const [a1, a2, a3] = [firstAttempt(101, 1), firstAttempt(102, 1), firstAttempt(104, 1)];
    queue.add([a1, a2, firstAttempt(103, 2), a3]);
    expect(startAll(queue)).toEqual([101, 103]);
    expect(queue.waitingCount).toBe(2);
    queue.finishAttempt(a1, 'refusal', 5, true);
    expect(startAll(queue)).toEqual([102]);
    queue.finishAttempt(a2, 'success', 5, true);
    expect(startAll(queue)).toEqual([104]);
    queue.finishAttempt(a3, 'success', 5, true);
    expect(queue.waitingCount).toBe(0);
    expect(queue.inFlight).toBe(1);
  });

  it('keeps the order of a card that a merge moved to another customer', () => {
    const queue = createWideQueue();
    const attemptForCard = (id: number, customerId: number, card: number) => ({
      ...firstAttempt(id, customerId),
      stream: `customer_card-${card}`,
    });
    const [mine, customerUpdate, yours, other, later] = [
      attemptForCard(101, 1, 7),
      { ...firstAttempt(102, 2), stream: 'customer-2' },
      attemptForCard(103, 2, 7),
      attemptForCard(104, 2, 8),
      attemptForCard(105, 1, 7),
    ];
    queue.add([mine, customerUpdate, yours, other, later]);
    expect([startAll(queue), queue.waitingCount]).toEqual([[101, 102], 3]);
    queue.finishAttempt(customerUpdate, 'success', 5, true);
    expect(startAll(queue)).toEqual([]);
    queue.finishAttempt(mine, 'success', 5, true);
    expect(startAll(queue)).toEqual([103]);
    queue.finishAttempt(yours, 'success', 5, true);
    expect([startAll(queue), queue.waitingCount]).toEqual([[104, 105], 0]);
  });

  it('lets a first attempt wait for one that was in flight when the queue was lost', () => {
    const lostQueue = createWideQueue();
    const [a1, a2] = [firstAttempt(101, 1), firstAttempt(102, 1)];
    lostQueue.add([a1]);
    expect(startAll(lostQueue)).toEqual([101]);
    const queue = new DeliveryQueue('fast', lostQueue);
    queue.add([a2]);
    expect([startAll(queue), queue.waitingCount, queue.inFlight]).toEqual([[], 1, 0]);
    queue.endElsewhere(a1);
    queue.endElsewhere(a1);
    expect([startAll(queue), queue.waitingCount, queue.inFlight]).toEqual([[102], 0, 1]);
  });

  it('holds back neither retries nor redeliveries', () => {
    const queue = createWideQueue();
    const redelivery = { ...firstAttempt(105, 1), manual: true };
    queue.add([firstAttempt(101, 1), firstAttempt(102, 1), retry(50, 1), redelivery]);
    expect(startAll(queue).sort((a, b) => a - b)).toEqual([50, 101, 105]);
  });

  it('alternates between first attempts and retries, so that neither starves the other', () => {
    const queue = createWideQueue();
    queue.add([
      retry(1, 1),
      retry(2, 2),
      retry(3, 3),
      firstAttempt(11, 11),
      firstAttempt(12, 12),
      firstAttempt(13, 13),
    ]);
    const order = startAll(queue).map((id) => (id > 10 ? 'first' : 'retry'));
    expect(order.slice(0, 4).sort()).toEqual(['first', 'first', 'retry', 'retry']);
  });

  it('drops every delivery that has not begun when it is cleared', () => {
    const queue = createWideQueue();
    const a1 = firstAttempt(101, 1);
    queue.add([a1, firstAttempt(102, 1), firstAttempt(103, 2), retry(9, 3)]);
    expect(queue.next()?.id).toBeDefined();
    const rest = queue.clear();
    expect(rest.length + queue.inFlight).toBe(4);
    expect(queue.waitingCount).toBe(0);
    expect(queue.next()).toBeUndefined();
  });

  it('drops the deliveries behind an attempt in flight when it is cleared, and sends new ones after that attempt', () => {
    const queue = createWideQueue();
    const a1 = firstAttempt(101, 1);
    queue.add([a1, firstAttempt(102, 1), firstAttempt(103, 1)]);
    expect(startAll(queue)).toEqual([101]);
    queue.add([firstAttempt(104, 2), retry(9, 3)]);
    const droppedIds = queue.clear().map(({ id }) => id);
    expect(droppedIds.sort((a, b) => a - b)).toEqual([9, 102, 103, 104]);
    queue.add([firstAttempt(105, 1)]);
    expect([startAll(queue), queue.clear().length]).toEqual([[], 1]);
    queue.skip(a1);
    expect([startAll(queue), queue.waitingCount, queue.inFlight]).toEqual([[], 0, 0]);
    queue.add([firstAttempt(106, 1)]);
    expect(startAll(queue)).toEqual([106]);
  });

  it('drops the deliveries behind a skipped one when it is cleared, and sends new ones at once', () => {
    const queue = createWideQueue();
    const a1 = firstAttempt(101, 1);
    queue.add([a1, firstAttempt(102, 1), firstAttempt(103, 1)]);
    expect(startAll(queue)).toEqual([101]);
    queue.skip(a1);
    expect(queue.waitingCount).toBe(2);
    expect(
      queue
        .clear()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([102, 103]);
    queue.add([firstAttempt(104, 1)]);
    expect(startAll(queue)).toEqual([104]);
  });

  it("lets the customer's next delivery go when one is skipped", () => {
    const queue = createWideQueue();
    const a1 = firstAttempt(101, 1);
    queue.add([a1, firstAttempt(102, 1)]);
    expect(startAll(queue)).toEqual([101]);
    queue.skip(a1);
    expect(startAll(queue)).toEqual([102]);
  });
});

describe('DeliveryQueue.concurrency', () => {
  it('limits how many deliveries are in flight', () => {
    const narrow = new DeliveryQueue();
    narrow.add([firstAttempt(1, 1), firstAttempt(2, 2), retry(3, 3)]);
    expect(startAll(narrow)).toHaveLength(1);
    const wide = createWideQueue();
    wide.add(Array.from({ length: 20 }, (_, i) => firstAttempt(101 + i, 101 + i)));
    expect([startAll(wide).length, wide.waitingCount]).toEqual([16, 4]);
  });

  it('grows when the waiting deliveries would take longer than a second', () => {
    for (const [milliseconds, concurrency] of [
      [500, 1],
      [501, 2],
    ] as const) {
      const queue = new DeliveryQueue();
      queue.hasMore = false;
      queue.add([firstAttempt(1, 1), firstAttempt(2, 2), retry(3, 3)]);
      const startedDelivery = queue.next();
      if (startedDelivery) queue.finishAttempt(startedDelivery, 'success', milliseconds, true);
      expect(queue.concurrency).toBe(concurrency);
    }
  });

  it('starts at one, and grows by one with each success up to 16 while the queue has more', () => {
    const queue = new DeliveryQueue();
    expect(queue.concurrency).toBe(1);
    for (let id = 1; id <= 3; id++) attempt(queue, firstAttempt(id, id), 'success');
    expect(queue.concurrency).toBe(4);
    for (let id = 4; id <= 40; id++) attempt(queue, firstAttempt(id, id), 'success');
    expect(queue.concurrency).toBe(16);
  });

  it('does not grow when nothing waits, or the process has no capacity left', () => {
    const queue = new DeliveryQueue();
    queue.hasMore = false;
    attempt(queue, firstAttempt(1, 1), 'success');
    expect(queue.concurrency).toBe(1);
    queue.hasMore = true;
    queue.add([firstAttempt(2, 2)]);
    const next = queue.next();
    if (next) queue.finishAttempt(next, 'success', 5, false);
    expect(queue.concurrency).toBe(1);
  });

  it.each([
    ['overload', 8],
    ['silence', 8],
    ['refusal', 16],
  ] as [Signal, number][])('after %s is %i when it was 16', (signal, concurrency) => {
    const queue = createWideQueue();
    attempt(queue, firstAttempt(101, 1), signal);
    expect(queue.concurrency).toBe(concurrency);
  });
});

describe('DeliveryQueue.tier', () => {
  it.each([
    [['success'], 5, 'fast'],
    [['success'], 2_500, 'slow'],
    [['refusal', 'overload'], 5, 'fast'],
    [['silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence', 'silence'], 5, 'probe'],
    [['silence', 'silence', 'silence', 'silence', 'silence', 'success'], 5, 'fast'],
  ] as [Signal[], number, string][])(
    'after attempts with %j of %i ms each is %s',
    (signals, milliseconds, tier) => {
      const queue = new DeliveryQueue();
      signals.forEach((signal, i) => attempt(queue, firstAttempt(i, i), signal, milliseconds));
      expect(queue.tier).toBe(tier);
    },
  );

  it('of a new queue is fast, or the tier that is passed in', () => {
    expect(new DeliveryQueue().tier).toBe('fast');
    expect(new DeliveryQueue('slow').tier).toBe('slow');
  });

  it('is slow after a slow response, and fast again after five quick ones', () => {
    const queue = new DeliveryQueue();
    const tiers = [5_000, 5, 5, 5, 5, 5].map((milliseconds, i) => {
      attempt(queue, firstAttempt(i, i), 'success', milliseconds);
      return queue.tier;
    });
    expect(tiers).toEqual(['slow', 'slow', 'slow', 'slow', 'slow', 'fast']);
  });

  it('of a probe allows one attempt at a time, whatever the concurrency was before', () => {
    const queue = createWideQueue();
    for (let id = 101; id <= 105; id++) attempt(queue, firstAttempt(id, id), 'silence');
    expect(queue.concurrency).toBe(1);
  });
});
