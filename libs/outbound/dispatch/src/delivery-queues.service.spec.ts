import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import {
  DeliveryQueues,
  type LeasedQueue,
  type LoadedDelivery,
} from './delivery-queues.service.js';

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
let queues: DeliveryQueues;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
  queues = new DeliveryQueues(metrics);
});

afterEach(() => metrics.onApplicationShutdown());

function leaseQueue(): LeasedQueue {
  queues.lease(7, 'fast');
  const queue = queues.get(7);
  if (!queue) throw new Error('queue 7 is not leased');
  return queue;
}

/** Begins the next one, as an attempt does. */
function begin(queue: LeasedQueue): LoadedDelivery {
  const delivery = queues.startNext(queue);
  if (!delivery) throw new Error('nothing may be sent');
  return delivery;
}

// attempt 1 begins | lost, leased, attempt 2 begins | lost | attempt 1 ends | leased
it('a queue that was lost twice waits only for attempts that are still in flight', () => {
  const firstLease = leaseQueue();
  queues.add(firstLease, [first(1, 1)]);
  const one = begin(firstLease);
  queues.markLost(firstLease);
  const secondLease = leaseQueue();
  queues.add(secondLease, [first(2, 2)]);
  const two = begin(secondLease);
  queues.markLost(secondLease);
  firstLease.finishAttempt(one, 'success', 5, true);
  queues.settle(firstLease, one);
  const queue = leaseQueue();
  queues.add(queue, [first(3, 1), first(4, 2)]);
  const three = begin(queue);
  expect(three.id).toBe(3);
  queue.skip(three);
  expect(queue.startNext()).toBeUndefined();
  secondLease.finishAttempt(two, 'success', 5, true);
  queues.settle(secondLease, two);
  expect(queue.startNext()?.id).toBe(4);
});
