import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LeasedQueues, type LoadedDelivery, type WorkerQueue } from './leased-queues.service.js';

const AT = new Date('2026-03-01T12:00:00.000Z');

const first = (id: number, customerId: number): LoadedDelivery => ({
  id,
  subscriptionId: 7,
  accountId: 1,
  customerId,
  stream: `customer_card-${customerId}`,
  eventSeq: id,
  eventId: `evt_${id}`,
  type: 'stamp.earned',
  payloadFormat: 'envelope',
  tries: 0,
  manual: false,
  firstAttemptAt: null,
  createdAt: AT,
  dueAt: AT,
  redeliveryId: 0,
  body: 'unrendered',
  readAt: 0,
});

let metrics: DeliveryMetrics;
let queues: LeasedQueues;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
  queues = new LeasedQueues(metrics);
});

afterEach(() => metrics.onApplicationShutdown());

function claimed(): WorkerQueue {
  queues.lease(7, 'fast');
  const queue = queues.get(7);
  if (!queue) throw new Error('it was claimed');
  return queue;
}

/** Begins the next one, as an attempt does. */
function begin(queue: WorkerQueue): LoadedDelivery {
  const delivery = queue.deliveries.next();
  if (!delivery) throw new Error('nothing may be sent');
  queue.begin();
  queues.countStart();
  return delivery;
}

// begins 1 | lost, claimed, begins 2 | lost | 1 ends | claimed
it('a queue that was lost twice waits for nothing that has ended in between', () => {
  const before = claimed();
  queues.add(before, [first(1, 1)]);
  const one = begin(before);
  queues.markLost(before);
  const between = claimed();
  queues.add(between, [first(2, 2)]);
  const two = begin(between);
  queues.markLost(between);
  before.deliveries.finishAttempt(one, 'success', 5, true);
  queues.settle(before, one);
  const queue = claimed();
  queues.add(queue, [first(3, 1), first(4, 2)]);
  const three = begin(queue);
  expect(three.id).toBe(3);
  queue.deliveries.skip(three);
  expect(queue.deliveries.next()).toBeUndefined();
  between.deliveries.finishAttempt(two, 'success', 5, true);
  queues.settle(between, two);
  expect(queue.deliveries.next()?.id).toBe(4);
});
