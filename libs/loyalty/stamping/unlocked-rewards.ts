import type { CustomerCardEvent, UnlockedReward } from './customer-card.events.js';

export type Milestone = {
  id: number;
  name: string;
  description: string | null;
  stampsRequired: number;
  active: boolean;
};

/** The state of a card that rewards are compared with. */
type Balance = { stampsCount: number; unlocked: UnlockedReward[] };

/** The thresholds of a full card and of its rewards, cheapest first. */
type Thresholds = { stampsRequired: number; rewards: Milestone[] };

/** SQL of the stamps that the reward `w` took when it was unlocked on the customer card `k`; null when it is not. */
export const UNLOCKED_STAMPS = `(
  select min((u ->> 'stampsRequired')::bigint) from jsonb_array_elements(k.state -> 'unlocked') u
  where (u ->> 'rewardId')::bigint = w.id)`;

/** Adds rewards to those that are unlocked already; of two thresholds of one reward the lower one stays. */
export function mergeUnlocked(
  already: readonly UnlockedReward[],
  added: readonly UnlockedReward[],
): UnlockedReward[] {
  const merged = new Map(already.map(({ rewardId, stampsRequired }) => [rewardId, stampsRequired]));
  for (const { rewardId, stampsRequired } of added) {
    merged.set(rewardId, Math.min(merged.get(rewardId) ?? stampsRequired, stampsRequired));
  }
  return [...merged].map(([rewardId, stampsRequired]) => ({ rewardId, stampsRequired }));
}

/**
 * Returns the rewards with the stamps that each takes on a card: an unlocked one takes what it took when it was
 * unlocked, if that is less than its threshold now. Cheapest first.
 */
export function priceRewards(rewards: Milestone[], unlocked: UnlockedReward[]): Milestone[] {
  if (!areAnyCheaper(rewards, unlocked)) return rewards;
  const limits = new Map(
    unlocked.map(({ rewardId, stampsRequired }) => [rewardId, stampsRequired]),
  );
  return rewards
    .map((reward) => ({
      ...reward,
      stampsRequired: Math.min(reward.stampsRequired, limits.get(reward.id) ?? Infinity),
    }))
    .sort((a, b) => a.stampsRequired - b.stampsRequired || a.id - b.id);
}

/** Tells whether any unlocked reward took less than its threshold now. Nearly always none did. */
function areAnyCheaper(rewards: Milestone[], unlocked: UnlockedReward[]): boolean {
  for (const { rewardId, stampsRequired } of unlocked) {
    for (const reward of rewards) {
      if (reward.id === rewardId && stampsRequired < reward.stampsRequired) return true;
    }
  }
  return false;
}

/** Returns the active rewards that the balance covers, with what they take on the card, cheapest first (CCARD-16). */
export function findAvailableRewards(
  card: Balance,
  { rewards }: { rewards: Milestone[] },
): Milestone[] {
  const available: Milestone[] = [];
  for (const reward of priceRewards(rewards, card.unlocked)) {
    if (reward.active && reward.stampsRequired <= card.stampsCount) available.push(reward);
  }
  return available;
}

/** Returns whole per cent towards the cheapest active reward above the balance, otherwise towards the full card. */
export function calculateProgress(card: Balance, { stampsRequired, rewards }: Thresholds): number {
  const target = findTarget(card.stampsCount, {
    stampsRequired,
    rewards: priceRewards(rewards, card.unlocked),
  });
  return Math.min(100, Math.floor((100 * card.stampsCount) / target));
}

/**
 * Returns the threshold of the cheapest active reward above the balance, or else of a full card.
 * @param rewards with what they take on the card
 */
export function findTarget(stampsCount: number, { stampsRequired, rewards }: Thresholds): number {
  for (const reward of rewards) {
    if (reward.active && reward.stampsRequired > stampsCount) return reward.stampsRequired;
  }
  return stampsRequired;
}

/** Unlocks each active reward that the balance now covers and that is not unlocked yet (STAMP-36). */
export function createUnlocks(
  customerId: number,
  stampsCount: number,
  already: readonly UnlockedReward[],
  { rewards }: { rewards: Milestone[] },
): CustomerCardEvent[] {
  const events: CustomerCardEvent[] = [];
  for (const { id, name, description, active, stampsRequired } of rewards) {
    if (!active || stampsRequired > stampsCount || isUnlocked(already, id)) continue;
    const data = { customerId, rewardId: id, name, description, stampsRequired };
    events.push({ type: 'RewardUnlocked', data });
  }
  return events;
}

function isUnlocked(already: readonly UnlockedReward[], id: number): boolean {
  for (const { rewardId } of already) if (rewardId === id) return true;
  return false;
}

/** Tells whether stamps are enough for several rewards together; else their holder has to choose. */
export function coversAll(stampsCount: number, costs: readonly number[]): boolean {
  return costs.reduce((sum, cost) => sum + cost, 0) <= stampsCount;
}
