import type { CapKind } from '#platform/event-store/port/event-store.js';
import {
  CreateCommand,
  handleChange,
  handleCreation,
  RecordCommand,
  UpdateCommand,
} from '#platform/event-store/commands/record-commands.js';
import { reward, createReward, deleteReward, updateReward, type NewReward } from './reward.js';
import { toRewardJson, type RewardJson } from './reward.dto.js';
import type { RewardAttributes } from './reward.events.js';
import { redemptionCap, RewardsService } from './rewards.service.js';
import { ISSUES } from '#translations/issues.js';

const rewardCap: CapKind = {
  table: reward.table,
  ownerColumn: 'card_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_rewards,
  resolution: 'Delete one first.',
};

/** Every page and pass of the card, and every stamp on it, reads all of its rewards. */
const MAX_REWARDS_PER_CARD = 50;

export class CreateReward extends CreateCommand<NewReward, RewardJson> {}
export class UpdateReward extends UpdateCommand<Partial<RewardAttributes>, RewardJson> {}
export class DeleteReward extends RecordCommand<void> {}

export const rewardHandlers = [
  handleCreation(
    CreateReward,
    reward,
    [RewardsService],
    ({ context: { accountId }, attributes }, id, rewards) => ({
      load: () => rewards.getNextPosition(accountId, attributes.cardId),
      decide: (_state, next: number) => ({
        events: createReward(id, accountId, {
          ...attributes,
          position: attributes.position ?? next,
        }),
        cap: { kind: rewardCap, owner: attributes.cardId, id, max: MAX_REWARDS_PER_CARD },
      }),
      respond: ({ state }) => toRewardJson(state),
    }),
  ),
  handleChange(UpdateReward, reward, [], ({ changes }) => ({
    decide: (current) => updateReward(current, changes),
    respond: ({ state }) => toRewardJson(state),
  })),
  handleChange(DeleteReward, reward, [RewardsService], ({ id }, rewards) => ({
    load: () => rewards.wasRedeemed(id),
    decide: (state, wasRedeemed: boolean) => ({
      events: deleteReward(state, wasRedeemed),
      cap: { kind: redemptionCap, owner: id, owners: [state?.cardId ?? 0], id: 0, max: 1 },
    }),
    respond: () => undefined,
  })),
];
