import type { CapKind } from '#platform/event-store/port/event-store.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { reward, type Reward } from './reward.js';
import type { RewardEvent } from './reward.events.js';
import { ISSUES } from '#translations/issues.js';

export const rewardReadModel: ReadModel<Reward, RewardEvent> = {
  aggregate: reward,
  table: 'rewards',
};

export const rewardCap: CapKind = {
  table: rewardReadModel.table,
  ownerColumn: 'card_id',
  countedCondition: 'r.deleted_at is null',
  issue: ISSUES.too_many_rewards,
  resolution: 'Delete one first.',
};
