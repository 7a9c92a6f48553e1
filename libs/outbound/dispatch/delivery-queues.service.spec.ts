import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { Delivery } from './delivery.js';
import { DeliveryQueues, type LeasedQueue } from './delivery-queues.service.js';

const AT = new Date('2026-03-01T12:00:00.000Z');

const first = (id: number, customerId: number): Delivery => ({
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
let queues: DeliveryQueues;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
  queues = new DeliveryQueues(metrics, undefined as never);
});

afterEach(() => metrics.onApplicationShutdown());

function claimed(): LeasedQueue {
  queues.lease(7, 'fast');
  const queue = queues.get(7);
  if (!queue) throw new Error('it was claimed');
  return queue;
}

/** Begins the next one, as an attempt does. */
function begin(queue: LeasedQueue): Delivery {
  const delivery = queue.startNext();
  if (!delivery) throw new Error('nothing may be sent');
  return delivery;
}

// begins 1 | lost, claimed, begins 2 | lost | 1 ends | claimed
it('a queue that was lost twice waits for nothing that has ended in between', () => {
  const before = claimed();
  before.add([first(1, 1)]);
  const one = begin(before);
  queues.markLost(before);
  const between = claimed();
  between.add([first(2, 2)]);
  const two = begin(between);
  queues.markLost(between);
  before.finishAttempt(one, 'success', 5, true);
  queues.remove(before, one);
  const queue = claimed();
  queue.add([first(3, 1), first(4, 2)]);
  const three = begin(queue);
  expect(three.id).toBe(3);
  queue.skip(three);
  expect(queue.startNext()).toBeUndefined();
  between.finishAttempt(two, 'success', 5, true);
  queues.remove(between, two);
  expect(queue.startNext()?.id).toBe(4);
});
