import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';

/** A change that the customer is notified of. The text follows from the pass and its locale. */
export type PassNotification =
  | { kind: 'stamped'; stamps: number }
  | { kind: 'redeemed'; rewardName: string }
  | { kind: 'unlocked'; rewardName: string };

export type NotificationText = {
  /** Null when stamps were removed: then the balance alone is shown. */
  text: string | null;
  /** Whether the text says how many stamps there are or are missing, so that each is different from the one before. */
  hasCount: boolean;
  /** Whether the store wrote it. */
  isOwn: boolean;
};

/** A notification with its text as of that moment: later changes of a card or its rewards must not notify again. */
export type WrittenNotification = PassNotification & NotificationText;

/** Of several changes at once, the customer is notified of the last one with the highest weight. */
const WEIGHT = { stamped: 0, redeemed: 1, unlocked: 1 } as const;

/** The effect of a card's events on its pass. */
export type BalanceChange = {
  /** Whether the balance changed at all, silently or not. */
  changed: boolean;
  /** Null when the customer is not notified. */
  notification: PassNotification | null;
  /** Whether the last action was silent; then so are the rewards that it unlocks. */
  silent: boolean;
};

export const UNCHANGED: BalanceChange = { changed: false, notification: null, silent: false };

export function applyToNotification(
  before: BalanceChange,
  event: CustomerCardEvent,
): BalanceChange {
  const { type, data } = event;
  switch (type) {
    case 'StampsEarned':
      // These stamps come with the card, so no pass was ever without them.
      if (data.source === 'welcome_bonus') return { ...before, silent: true };
      return applyAction(before, data.silent, addStamps(before, data.stamps));
    case 'StampsRemoved':
      return applyAction(before, data.silent, addStamps(before, -data.stamps));
    case 'RewardRedeemed':
      return applyAction(before, data.silent, { kind: 'redeemed', rewardName: data.rewardName });
    case 'RewardUnlocked':
      if (before.silent) return before;
      return { ...before, notification: { kind: 'unlocked', rewardName: data.name } };
    default:
      return before;
  }
}

function applyAction(
  { notification }: BalanceChange,
  silent: boolean,
  latest: PassNotification,
): BalanceChange {
  const isOutweighed = notification && WEIGHT[notification.kind] > WEIGHT[latest.kind];
  return { changed: true, silent, notification: silent || isOutweighed ? notification : latest };
}

function addStamps({ notification }: BalanceChange, stamps: number): PassNotification {
  return {
    kind: 'stamped',
    stamps: stamps + (notification?.kind === 'stamped' ? notification.stamps : 0),
  };
}
