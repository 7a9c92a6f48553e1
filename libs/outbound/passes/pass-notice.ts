import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';

/** A change that the customer is notified of. The text follows from the pass and its locale. */
export type PassNotice =
  | { kind: 'stamped'; stamps: number }
  | { kind: 'redeemed'; rewardName: string }
  | { kind: 'unlocked'; rewardName: string };

export type NoticeText = {
  /** Null when stamps were removed: then the balance alone is shown. */
  text: string | null;
  /** Whether the text says how many stamps there are or are missing, so that each is different from the one before. */
  hasCount: boolean;
  /** Whether the store wrote it. */
  isOwn: boolean;
};

/** A notice with its text as of that moment: later changes of a card or its rewards must not notify again. */
export type WrittenNotice = PassNotice & NoticeText;

/** Of several changes at once, the customer is notified of the last one with the highest weight. */
const WEIGHT = { stamped: 0, redeemed: 1, unlocked: 1 } as const;

/** The effect of a card's events on its pass. */
export type BalanceChange = {
  /** Whether the balance changed at all, silently or not. */
  changed: boolean;
  /** Null when the customer is not notified. */
  notice: PassNotice | null;
  /** Whether the last action was silent; then so are the rewards that it unlocks. */
  silent: boolean;
};

export const UNCHANGED: BalanceChange = { changed: false, notice: null, silent: false };

export function applyToNotice(before: BalanceChange, event: CustomerCardEvent): BalanceChange {
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
      return { ...before, notice: { kind: 'unlocked', rewardName: data.name } };
    default:
      return before;
  }
}

function applyAction(
  { notice }: BalanceChange,
  silent: boolean,
  latest: PassNotice,
): BalanceChange {
  const isOutweighed = notice && WEIGHT[notice.kind] > WEIGHT[latest.kind];
  return { changed: true, silent, notice: silent || isOutweighed ? notice : latest };
}

function addStamps({ notice }: BalanceChange, stamps: number): PassNotice {
  return { kind: 'stamped', stamps: stamps + (notice?.kind === 'stamped' ? notice.stamps : 0) };
}
