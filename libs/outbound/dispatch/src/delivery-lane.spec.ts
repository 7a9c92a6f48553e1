import { describe, expect, it } from '@jest/globals';
import { DeliveryLane, type Queued, type Signal } from './delivery-lane.js';

const first = (id: number, customerId: number): Queued => ({
  id,
  customerId,
  stream: `customer_card-${customerId}`,
  tries: 0,
  manual: false,
});
const again = (id: number, customerId: number): Queued => ({
  ...first(id, customerId),
  tries: 1,
});

/** Grown to its limit, so that only the order holds anything back. */
function wideLane(): DeliveryLane<Queued> {
  const lane = new DeliveryLane();
  for (let id = 1; id <= 20; id++) answer(lane, first(id, id), 'success');
  return lane;
}

function answer(lane: DeliveryLane<Queued>, delivery: Queued, signal: Signal, milliseconds = 5) {
  lane.add([delivery]);
  expect(lane.next()).toBe(delivery);
  lane.done(delivery, signal, milliseconds, true);
}

function started(lane: DeliveryLane<Queued>): number[] {
  const ids: number[] = [];
  for (let next = lane.next(); next; next = lane.next()) ids.push(next.id);
  return ids;
}

describe('the order of a lane', () => {
  it('lets one first attempt a customer go at a time, in the order of the events', () => {
    const lane = wideLane();
    const [a1, a2, a3] = [first(101, 1), first(102, 1), first(104, 1)];
    lane.add([a1, a2, first(103, 2), a3]);
    expect(started(lane)).toEqual([101, 103]);
    expect(lane.known).toBe(2);
    lane.done(a1, 'refusal', 5, true);
    expect(started(lane)).toEqual([102]);
    lane.done(a2, 'success', 5, true);
    expect(started(lane)).toEqual([104]);
    lane.done(a3, 'success', 5, true);
    expect(lane.known).toBe(0);
    expect(lane.inFlight).toBe(1);
  });

  it('keeps the order of a card that a merge gave another customer', () => {
    const lane = wideLane();
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
    lane.add([mine, updated, yours, alien, later]);
    expect([started(lane), lane.known]).toEqual([[101, 102], 3]);
    lane.done(updated, 'success', 5, true);
    expect(started(lane)).toEqual([]);
    lane.done(mine, 'success', 5, true);
    expect(started(lane)).toEqual([103]);
    lane.done(yours, 'success', 5, true);
    expect([started(lane), lane.known]).toEqual([[104, 105], 0]);
  });

  it('waits for what was under way before the lane was lost', () => {
    const lost = wideLane();
    const [a1, a2] = [first(101, 1), first(102, 1)];
    lost.add([a1]);
    expect(started(lost)).toEqual([101]);
    const lane = new DeliveryLane('fast', lost);
    lane.add([a2]);
    expect([started(lane), lane.known, lane.inFlight]).toEqual([[], 1, 0]);
    lane.endedElsewhere(a1);
    lane.endedElsewhere(a1);
    expect([started(lane), lane.known, lane.inFlight]).toEqual([[102], 0, 1]);
  });

  it('holds back neither retries nor redeliveries', () => {
    const lane = wideLane();
    const asked = { ...first(105, 1), manual: true };
    lane.add([first(101, 1), first(102, 1), again(50, 1), asked]);
    expect(started(lane).sort((a, b) => a - b)).toEqual([50, 101, 105]);
  });

  it('alternates between first attempts and retries, so that neither starves the other', () => {
    const lane = wideLane();
    lane.add([again(1, 1), again(2, 2), again(3, 3), first(11, 11), first(12, 12), first(13, 13)]);
    const order = started(lane).map((id) => (id > 10 ? 'first' : 'again'));
    expect(order.slice(0, 4).sort()).toEqual(['again', 'again', 'first', 'first']);
  });

  it('drops what has not begun, whatever it waited for', () => {
    const lane = wideLane();
    const a1 = first(101, 1);
    lane.add([a1, first(102, 1), first(103, 2), again(9, 3)]);
    expect(lane.next()?.id).toBeDefined();
    const rest = lane.clear();
    expect(rest.length + lane.inFlight).toBe(4);
    expect(lane.known).toBe(0);
    expect(lane.next()).toBeUndefined();
  });

  it('drops what waits for an attempt under way, and lets its customer begin anew after that', () => {
    const lane = wideLane();
    const a1 = first(101, 1);
    lane.add([a1, first(102, 1), first(103, 1)]);
    expect(started(lane)).toEqual([101]);
    lane.add([first(104, 2), again(9, 3)]);
    const dropped = lane.clear().map(({ id }) => id);
    expect(dropped.sort((a, b) => a - b)).toEqual([9, 102, 103, 104]);
    lane.add([first(105, 1)]);
    expect([started(lane), lane.clear().length]).toEqual([[], 1]);
    lane.letGo(a1);
    expect([started(lane), lane.known, lane.inFlight]).toEqual([[], 0, 0]);
    lane.add([first(106, 1)]);
    expect(started(lane)).toEqual([106]);
  });

  it('drops what may go again but has not begun, and forgets that its customer is busy', () => {
    const lane = wideLane();
    const a1 = first(101, 1);
    lane.add([a1, first(102, 1), first(103, 1)]);
    expect(started(lane)).toEqual([101]);
    lane.letGo(a1);
    expect(lane.known).toBe(2);
    expect(
      lane
        .clear()
        .map(({ id }) => id)
        .sort(),
    ).toEqual([102, 103]);
    lane.add([first(104, 1)]);
    expect(started(lane)).toEqual([104]);
  });

  it("lets the customer's next delivery go when one is over without an attempt", () => {
    const lane = wideLane();
    const a1 = first(101, 1);
    lane.add([a1, first(102, 1)]);
    expect(started(lane)).toEqual([101]);
    lane.letGo(a1);
    expect(started(lane)).toEqual([102]);
  });
});

describe('how many at once', () => {
  it('is never more than it may be', () => {
    const narrow = new DeliveryLane();
    narrow.add([first(1, 1), first(2, 2), again(3, 3)]);
    expect(started(narrow)).toHaveLength(1);
    const wide = wideLane();
    wide.add(Array.from({ length: 20 }, (_, i) => first(101 + i, 101 + i)));
    expect([started(wide).length, wide.known]).toEqual([16, 4]);
  });

  it('grows for a known backlog that takes longer than a second', () => {
    for (const [milliseconds, atOnce] of [
      [500, 1],
      [501, 2],
    ] as const) {
      const lane = new DeliveryLane();
      lane.more = false;
      lane.add([first(1, 1), first(2, 2), again(3, 3)]);
      const begun = lane.next();
      if (begun) lane.done(begun, 'success', milliseconds, true);
      expect(lane.atOnce).toBe(atOnce);
    }
  });

  it('begins with one, and grows by one with each success while there is more to do', () => {
    const lane = new DeliveryLane();
    expect(lane.atOnce).toBe(1);
    for (let id = 1; id <= 3; id++) answer(lane, first(id, id), 'success');
    expect(lane.atOnce).toBe(4);
    for (let id = 4; id <= 40; id++) answer(lane, first(id, id), 'success');
    expect(lane.atOnce).toBe(16);
  });

  it('stays as it is when nothing waits, or the process has no capacity left', () => {
    const lane = new DeliveryLane();
    lane.more = false;
    answer(lane, first(1, 1), 'success');
    expect(lane.atOnce).toBe(1);
    lane.more = true;
    lane.add([first(2, 2)]);
    const next = lane.next();
    if (next) lane.done(next, 'success', 5, false);
    expect(lane.atOnce).toBe(1);
  });

  it.each([
    ['overload', 8],
    ['silence', 8],
    ['refusal', 16],
  ] as [Signal, number][])('after %s it is %i of 16', (signal, atOnce) => {
    const lane = wideLane();
    answer(lane, first(101, 1), signal);
    expect(lane.atOnce).toBe(atOnce);
  });
});

describe('the pace', () => {
  it.each([
    [['success'], 5, 'fast'],
    [['success'], 2_500, 'slow'],
    [['refusal', 'overload'], 5, 'fast'],
    [['silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence'], 5, 'slow'],
    [['silence', 'silence', 'silence', 'silence', 'silence'], 5, 'probe'],
    [['silence', 'silence', 'silence', 'silence', 'silence', 'success'], 5, 'fast'],
  ] as [Signal[], number, string][])('after %j in %i ms is %s', (signals, milliseconds, pace) => {
    const lane = new DeliveryLane();
    signals.forEach((signal, i) => answer(lane, first(i, i), signal, milliseconds));
    expect(lane.pace).toBe(pace);
  });

  it('is what the lane begins with', () => {
    expect(new DeliveryLane().pace).toBe('fast');
    expect(new DeliveryLane('slow').pace).toBe('slow');
  });

  it('forgets a slow answer over the next ones', () => {
    const lane = new DeliveryLane();
    const paces = [5_000, 5, 5, 5, 5, 5].map((milliseconds, i) => {
      answer(lane, first(i, i), 'success', milliseconds);
      return lane.pace;
    });
    expect(paces).toEqual(['slow', 'slow', 'slow', 'slow', 'slow', 'fast']);
  });

  it('of a probe is one at a time, whatever it was before', () => {
    const lane = wideLane();
    for (let id = 101; id <= 105; id++) answer(lane, first(id, id), 'silence');
    expect(lane.atOnce).toBe(1);
  });
});
