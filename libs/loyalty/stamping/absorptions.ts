import type { UnlockedReward } from './customer-card.events.js';
import { mergeUnlocked } from './unlocked-rewards.js';

/** Holds the data to take back what a merge has unlocked on the surviving card (REWARD-31). */
export type Absorption = {
  fromId: number;
  /** The rewards that the card has unlocked apart from the merge, with their thresholds without it. */
  unlocked: UnlockedReward[];
  /** The rewards that the sum of both balances unlocked. The card keeps one only if its own balance covers it. */
  reached: UnlockedReward[];
  /** Whether the next rewards are those that the sum unlocks. */
  isBeingAdded: boolean;
};

type Unlocks = { unlocked: UnlockedReward[]; absorptions?: Absorption[] };

/** Adds the rewards of a card that is merged into this one. */
export function absorbUnlocked<C extends Unlocks>(
  card: C,
  fromId: number,
  added: UnlockedReward[],
): C {
  const { unlocked, absorptions = [] } = endAdding(card);
  return {
    ...card,
    unlocked: mergeUnlocked(unlocked, added),
    absorptions: [...absorptions, { fromId, unlocked, reached: [], isBeingAdded: true }],
  };
}

/** Says that rewards from here on are unlocked by something else than the last merge. */
export function endAdding<C extends Unlocks>(card: C): C {
  if (card.absorptions?.at(-1)?.isBeingAdded !== true) return card;
  return mapAbsorptions(card, (absorption) => ({ ...absorption, isBeingAdded: false }));
}

/** Unlocks a reward. One that the card has already by a merge is only announced, for what the merge has brought. */
export function unlockReward<C extends Unlocks>(card: C, reward: UnlockedReward): C {
  const wasUnlockedBefore = card.unlocked.some(({ rewardId }) => rewardId === reward.rewardId);
  const unlocked = mergeUnlocked(card.unlocked, [reward]);
  const isAdding = card.absorptions?.at(-1)?.isBeingAdded === true;
  if (wasUnlockedBefore) return { ...card, unlocked };
  return mapAbsorptions({ ...card, unlocked }, (entry) => {
    if (!isAdding) return { ...entry, unlocked: mergeUnlocked(entry.unlocked, [reward]) };
    return entry.isBeingAdded
      ? { ...entry, reached: mergeUnlocked(entry.reached, [reward]) }
      : entry;
  });
}

/** Locks what a redemption locks, so that no undone merge brings it back. */
export function lockRewards<C extends Unlocks>(
  card: C,
  isLocked: (reward: UnlockedReward) => boolean,
): C {
  const locked = new Set(card.unlocked.filter(isLocked).map(({ rewardId }) => rewardId));
  const keep = (rewards: UnlockedReward[]) =>
    rewards.filter(({ rewardId }) => !locked.has(rewardId));
  return mapAbsorptions({ ...card, unlocked: keep(card.unlocked) }, (absorption) => ({
    ...absorption,
    unlocked: keep(absorption.unlocked),
    reached: keep(absorption.reached),
  }));
}

/**
 * Takes back what the merge has unlocked. What the sum had reached stays when the card's own balance covers it:
 * it was announced.
 * @param stampsCount without the stamps that go back
 */
export function giveBackUnlocked<C extends Unlocks>(
  card: C,
  fromId: number,
  stampsCount: number,
): C {
  const absorption = card.absorptions?.findLast((candidate) => candidate.fromId === fromId);
  if (!absorption) return card;
  const stillReached = absorption.reached.filter(
    ({ stampsRequired }) => stampsRequired <= stampsCount,
  );
  const unlocked = mergeUnlocked(absorption.unlocked, stillReached);
  const absorptions = card.absorptions?.filter((candidate) => candidate !== absorption) ?? [];
  return mapAbsorptions({ ...card, unlocked, absorptions }, (absorption) => ({
    ...absorption,
    unlocked: mergeUnlocked(absorption.unlocked, stillReached),
  }));
}

/** Changes the absorptions, and leaves the field out where there are none. */
function mapAbsorptions<C extends Unlocks>(
  { absorptions = [], ...card }: C,
  change: (absorption: Absorption) => Absorption,
): C {
  return { ...card, ...(absorptions.length > 0 && { absorptions: absorptions.map(change) }) } as C;
}
