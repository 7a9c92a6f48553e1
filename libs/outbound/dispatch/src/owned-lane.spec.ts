import { describe, expect, it } from '@jest/globals';
import { OwnedLane, type LaneView, type Target } from './owned-lane.js';

type Item = Parameters<OwnedLane<ReturnType<typeof first>>['isNew']>[0];

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
const view = (more: Partial<LaneView> = {}): LaneView => ({
  subscriptionId: 7,
  planned: 3,
  redelivery: false,
  target,
  ...more,
});

/** A lane that knows these deliveries, as of time 0. */
function given(...deliveries: Item[]): OwnedLane<Item> {
  const lane = new OwnedLane<Item>(7, 'fast', 0);
  lane.show(view(), 0);
  lane.lane.more = false;
  lane.add(deliveries);
  return lane;
}

/** Begins the next one, as an attempt does. */
function begin(lane: OwnedLane<Item>): Item {
  const delivery = lane.lane.next();
  if (!delivery) throw new Error('nothing may be sent');
  lane.begin();
  return delivery;
}

function recorded(lane: OwnedLane<Item>, delivery: Item, now = 0): void {
  lane.lane.done(delivery, 'success', 5, true);
  lane.settle(delivery, now);
}

describe('what the queue shows', () => {
  it('is new once: not while it is known, under way or unrecorded', () => {
    const lane = given();
    expect(lane.isNew(first(1))).toBe(true);
    lane.add([first(1)]);
    expect(lane.isNew(first(1))).toBe(false);
    const delivery = begin(lane);
    expect(lane.isNew(first(1))).toBe(false);
    lane.lane.done(delivery, 'success', 5, true);
    expect(lane.isNew(first(1))).toBe(false);
    lane.settle(delivery, 0);
    expect(lane.isNew(first(1))).toBe(true);
  });

  it('is not new when it was recorded while the queue was being asked', () => {
    const lane = given(again(1));
    lane.ask(64, 128);
    const delivery = begin(lane);
    recorded(lane, delivery);
    lane.remember(delivery);
    expect(lane.isNew(again(1))).toBe(false);
    lane.filled();
    expect(lane.isNew(again(1))).toBe(true);
  });

  it('is not new when it was asked for and recorded while the queue was being asked', () => {
    const lane = given(redelivery(1, 5));
    lane.ask(64, 128);
    const delivery = begin(lane);
    recorded(lane, delivery);
    lane.remember(delivery);
    expect(lane.isNew(redelivery(1, 5))).toBe(false);
    expect(lane.isNew(redelivery(1, 6))).toBe(true);
    expect(lane.isNew(again(1))).toBe(true);
    lane.filled();
    expect(lane.isNew(redelivery(1, 5))).toBe(true);
  });

  it('is identified by its request if it was asked for, whatever became of the delivery', () => {
    const lane = given(redelivery(1, 5));
    expect(lane.isNew(redelivery(1, 5))).toBe(false);
    expect(lane.isNew(redelivery(1, 6))).toBe(true);
    expect(lane.isNew(first(1))).toBe(true);
  });

  it('is too old when it was made before the last end, unless it was asked for', () => {
    const lane = given();
    const before = new Date(AT.getTime() + 1);
    lane.show(view({ target: { ...target, giveUpBefore: before } }), 0);
    expect(lane.outdatedBefore(first(1))).toEqual(before);
    expect(lane.outdatedBefore(redelivery(1, 5))).toBeUndefined();
    lane.show(view({ target: { ...target, giveUpBefore: AT } }), 0);
    expect(lane.outdatedBefore(first(1))).toBeUndefined();
  });
});

describe('asking for more', () => {
  it('continues after the last first attempt, and from the beginning when the lane is idle', () => {
    const lane = given();
    lane.isNew(first(9));
    lane.isNew(again(12));
    lane.add([first(9)]);
    expect(lane.ask(64, 128)).toEqual({ subscriptionId: 7, after: 9, room: 64, skip: 1 });
    recorded(lane, begin(lane));
    expect(lane.ask(64, 128)).toEqual({ subscriptionId: 7, after: 0, room: 64, skip: 0 });
  });

  it('skips a bounded number of those that are held', () => {
    expect(given(first(1), first(2), first(3)).ask(64, 2).skip).toBe(2);
  });

  it('is for lanes with room that stay', () => {
    const lane = given(first(1));
    expect([lane.wantsMore(2), lane.wantsMore(1)]).toEqual([true, false]);
    lane.leaving = true;
    expect(lane.wantsMore(2)).toBe(false);
  });

  it('finds out whether there is more', () => {
    const lane = given(first(1));
    lane.ask(4, 128);
    lane.sawAll({ firsts: 4, repeated: 0 }, 4, false);
    expect(lane.lane.more).toBe(true);
    lane.sawAll({ firsts: 3, repeated: 4 }, 4, false);
    expect(lane.lane.more).toBe(false);
    lane.sawAll({ firsts: 0, repeated: 5 }, 4, false);
    expect(lane.lane.more).toBe(true);
    lane.sawAll({ firsts: 0, repeated: 0 }, 4, true);
    expect(lane.lane.more).toBe(true);
  });

  it('finds more retries although those that came with the answer are held by now', () => {
    const lane = given();
    lane.ask(4, 128);
    lane.add([again(1), again(2), again(3), again(4)]);
    lane.sawAll({ firsts: 0, repeated: 4 }, 4, false);
    expect(lane.lane.more).toBe(true);
  });

  it('finds more retries although more are held than one question skips, unless it brought no others', () => {
    const lane = given(again(1), again(2), again(3));
    lane.ask(4, 2);
    lane.sawAll({ firsts: 0, repeated: 6 }, 4, false);
    expect(lane.lane.more).toBe(true);
    // Sent, but not recorded yet.
    for (let i = 1; i <= 3; i++) lane.lane.done(begin(lane), 'success', 5, true);
    lane.ask(4, 2);
    lane.sawAll({ firsts: 0, repeated: 6 }, 4, false);
    expect(lane.lane.more).toBe(false);
  });
});

describe('a lane whose subscription an attempt has ended', () => {
  it('sends nothing until that is recorded, and then seen', () => {
    const lane = given(first(1), first(2), first(3));
    const delivery = begin(lane);
    expect(lane.close()).toBe(2);
    expect([lane.maySend, lane.isClosing, lane.awaitsView]).toEqual([false, true, false]);
    recorded(lane, delivery);
    lane.closed();
    expect([lane.maySend, lane.isClosing, lane.awaitsView]).toEqual([false, true, true]);
    lane.reopen();
    expect([lane.maySend, lane.isClosing]).toEqual([true, false]);
  });

  it('forgets what was dropped, so that a resume brings it again', () => {
    const lane = given(first(1), first(2));
    begin(lane);
    lane.close();
    expect([lane.isNew(first(1)), lane.isNew(first(2))]).toEqual([false, true]);
  });
});

describe('a lane of which something could not be read', () => {
  it('sends nothing until all of it has been read again', () => {
    const lane = given(first(1), first(2), first(3));
    const delivery = begin(lane);
    expect(lane.startOver()).toBe(2);
    recorded(lane, delivery);
    expect([lane.maySend, lane.awaitsView]).toEqual([false, true]);
    lane.reopen();
    expect(lane.maySend).toBe(true);
    expect(lane.ask(64, 128).after).toBe(0);
    expect([1, 2, 3].map((id) => lane.isNew(first(id)))).toEqual([true, true, true]);
  });

  it('still waits for its end to be recorded', () => {
    const lane = given(first(1), first(2));
    begin(lane);
    lane.close();
    lane.startOver();
    expect(lane.awaitsView).toBe(false);
  });
});

describe('a lane that was lost with attempts under way', () => {
  it('does not make them twice when it comes back', () => {
    const before = given(first(1), first(2));
    const delivery = begin(before);
    before.drop();
    before.lost = true;
    const back = new OwnedLane<Item>(7, 'slow', 0, before);
    expect(before.maySend).toBe(false);
    expect([back.isNew(first(1)), back.isNew(first(2))]).toEqual([false, true]);
    before.settle(delivery, 0);
    expect(back.isNew(first(1))).toBe(true);
  });
});

describe('sending', () => {
  it.each([
    ['leaves', (lane: OwnedLane<Item>) => (lane.leaving = true)],
    ['is lost', (lane: OwnedLane<Item>) => (lane.lost = true)],
    ['is parked', (lane: OwnedLane<Item>) => (lane.hold = 'parked')],
  ])('stops when the lane %s', (_, change) => {
    const lane = given(first(1));
    expect(lane.maySend).toBe(true);
    change(lane);
    expect(lane.maySend).toBe(false);
  });

  it('continues with what is known when one delivery could not be processed', () => {
    const lane = given(first(1));
    lane.hold = 'trouble';
    expect(lane.maySend).toBe(true);
  });
});

describe('releasing', () => {
  it('waits until nothing is known, in flight or unrecorded, and a little longer', () => {
    const lane = given(first(1));
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    const delivery = begin(lane);
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    lane.lane.done(delivery, 'success', 5, true);
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    lane.settle(delivery, 8_500);
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    expect(lane.mayBeReleased(9_501, 1_000)).toBe(true);
  });

  it('comes at once when the lane leaves or is held', () => {
    const leaving = given();
    leaving.leaving = true;
    const held = given();
    held.hold = 'trouble';
    expect([leaving, held].map((lane) => lane.mayBeReleased(1, 1_000))).toEqual([true, true]);
  });

  it('does not come while a statement about it runs, nor while there is more', () => {
    const asked = given();
    asked.busy = 'filling';
    const hungry = given();
    hungry.hungry = true;
    const more = given();
    more.lane.more = true;
    for (const lane of [asked, hungry, more]) {
      expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    }
  });
});

describe('a lane whose lease was not renewed', () => {
  it('sends nothing until it is shown to be ours', () => {
    const lane = given(first(1));
    expect(lane.maySend).toBe(true);
    lane.doubted = true;
    expect(lane.maySend).toBe(false);
    lane.show(view(), 5);
    expect(lane.maySend).toBe(true);
  });
});

describe('what is given up', () => {
  it('keeps a lane from being released, and is told once', () => {
    const lane = given();
    lane.givingUp = true;
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(false);
    lane.gaveUp(true);
    expect(lane.mayBeReleased(9_000, 1_000)).toBe(true);
    expect([lane.takeGivenUp(), lane.takeGivenUp()]).toEqual([true, false]);
    lane.gaveUp(false);
    expect(lane.takeGivenUp()).toBe(false);
  });

  it('is not all any more once the subscription was enabled again', () => {
    const lane = given();
    lane.gaveUp(true);
    lane.show(view(), 5);
    lane.show(view({ target: undefined }), 10);
    expect(lane.takeGivenUp()).toBe(false);
  });
});
