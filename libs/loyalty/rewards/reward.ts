import { requireState, assertNever, defineAggregate } from '#platform/kernel/aggregate.js';
import { pickChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import {
  rewardEvents,
  type RewardAttributes,
  type RewardCreated,
  type RewardEvent,
} from './reward.events.js';
import { ISSUES } from '#translations/issues.js';

/** A milestone on a card, redeemable for stamps. */
export type Reward = { id: number; accountId: number; cardId: number } & RewardAttributes & {
    deletedAt: string | null;
    createdAt: string;
    updatedAt: string;
  };

/** A null position means after the card's last. */
export type NewReward = Omit<RewardCreated['data'], 'id' | 'accountId' | 'position'> & {
  position: number | null;
};

export const reward = defineAggregate<Reward, RewardEvent>({
  name: 'reward',
  table: 'rewards',
  events: rewardEvents,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'RewardCreated':
        return { ...event.data, deletedAt: null, createdAt: at, updatedAt: at };
      case 'RewardUpdated':
        return { ...requireState(state), ...event.data, updatedAt: at };
      case 'RewardDeleted':
        return { ...requireState(state), deletedAt: at, updatedAt: at };
      default:
        return assertNever(event);
    }
  },
});

export function createReward(
  id: number,
  accountId: number,
  attributes: { cardId: number } & RewardAttributes,
): RewardEvent[] {
  return [{ type: 'RewardCreated', data: { id, accountId, ...attributes } }];
}

/** Updates the record with an event of the actual changes; without any there is no event. */
export function updateReward(
  state: Reward | undefined,
  input: Partial<RewardAttributes>,
): RewardEvent[] {
  const data = pickChanges<RewardAttributes>(getExistingReward(state), input);
  return data ? [{ type: 'RewardUpdated', data }] : [];
}

export const REWARD_REDEEMED_RESOLUTION =
  'Set active to false instead: it can no longer be redeemed and the history stays whole.';

/** Deletes a reward that was never redeemed (REWARD-24): the history refers to the others. */
export function deleteReward(state: Reward | undefined, wasRedeemed: boolean): RewardEvent[] {
  getExistingReward(state);
  if (wasRedeemed) {
    throw new RejectedError(
      { base: [ISSUES.reward_redeemed] },
      'validation_failed',
      REWARD_REDEEMED_RESOLUTION,
    );
  }
  return [{ type: 'RewardDeleted', data: {} }];
}

function getExistingReward(state: Reward | undefined): Reward {
  if (!state || state.deletedAt !== null) throw new NotFoundError('Reward');
  return state;
}
