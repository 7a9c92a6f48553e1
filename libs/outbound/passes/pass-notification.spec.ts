import { describe, expect, it } from '@jest/globals';
import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';
import { applyToNotification, UNCHANGED, type PassNotification } from './pass-notification.js';

const create = (type: CustomerCardEvent['type'], data: object) =>
  ({ type, data }) as CustomerCardEvent;
const stamp = (stamps: number, silent = false) =>
  create('StampsEarned', { stamps, silent, source: 'api' });
const unlock = (name: string) => create('RewardUnlocked', { name });
const redeem = (rewardName: string) => create('RewardRedeemed', { rewardName, silent: false });

/** The notification after these events, which came together. */
const apply = (...events: CustomerCardEvent[]): PassNotification | null =>
  events.reduce(applyToNotification, UNCHANGED).notification;

describe('applyToNotification', () => {
  it('adds up stamps', () => {
    expect(apply(stamp(1), stamp(2))).toEqual({ kind: 'stamped', stamps: 3 });
  });

  it('prefers an unlocked reward to stamps, whichever came last', () => {
    const unlocked = { kind: 'unlocked', rewardName: 'Coffee' };
    expect(apply(stamp(5), unlock('Coffee'))).toEqual(unlocked);
    expect(apply(stamp(5), unlock('Coffee'), stamp(1))).toEqual(unlocked);
  });

  it('says that a reward was redeemed, though it was unlocked a moment before', () => {
    expect(apply(stamp(5), unlock('Coffee'), redeem('Coffee'))).toEqual({
      kind: 'redeemed',
      rewardName: 'Coffee',
    });
  });

  it('prefers what was unlocked after a redemption', () => {
    expect(apply(redeem('Coffee'), stamp(5), unlock('Cake'))).toEqual({
      kind: 'unlocked',
      rewardName: 'Cake',
    });
  });

  it('says nothing of silent stamps, nor of what they unlock', () => {
    expect(apply(stamp(5, true), unlock('Coffee'))).toBeNull();
    expect(apply(stamp(1), stamp(4, true))).toEqual({ kind: 'stamped', stamps: 1 });
  });
});
