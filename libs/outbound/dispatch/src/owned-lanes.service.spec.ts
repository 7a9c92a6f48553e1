import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { OwnedLanes, type Known, type Lane } from './owned-lanes.service.js';

const AT = new Date('2026-03-01T12:00:00.000Z');

const first = (id: number, customerId: number): Known => ({
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
let lanes: OwnedLanes;

beforeEach(() => {
  metrics = new DeliveryMetrics(new Registry());
  lanes = new OwnedLanes(metrics);
});

afterEach(() => metrics.onApplicationShutdown());

function claimed(): Lane {
  lanes.own(7, 'fast');
  const lane = lanes.get(7);
  if (!lane) throw new Error('it was claimed');
  return lane;
}

/** Begins the next one, as an attempt does. */
function begin(lane: Lane): Known {
  const delivery = lane.lane.next();
  if (!delivery) throw new Error('nothing may be sent');
  lane.begin();
  lanes.begun();
  return delivery;
}

// begins 1 | lost, claimed, begins 2 | lost | 1 ends | claimed
it('a lane that was lost twice waits for nothing that has ended in between', () => {
  const before = claimed();
  lanes.add(before, [first(1, 1)]);
  const one = begin(before);
  lanes.lose(before);
  const between = claimed();
  lanes.add(between, [first(2, 2)]);
  const two = begin(between);
  lanes.lose(between);
  before.lane.done(one, 'success', 5, true);
  lanes.settle(before, one);
  const lane = claimed();
  lanes.add(lane, [first(3, 1), first(4, 2)]);
  const three = begin(lane);
  expect(three.id).toBe(3);
  lane.lane.letGo(three);
  expect(lane.lane.next()).toBeUndefined();
  between.lane.done(two, 'success', 5, true);
  lanes.settle(between, two);
  expect(lane.lane.next()?.id).toBe(4);
});
