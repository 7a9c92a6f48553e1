import type { CapKind } from '#event-store/port/event-store.js';
import type { ReadModel } from '#event-store/read-models/read-models.js';
import { reward, type Reward } from './reward.js';
import type { RewardEvent } from './reward.events.js';

export const rewardReadModel: ReadModel<Reward, RewardEvent> = {
  aggregate: reward,
  table: 'rewards',
};

export const rewardCap: CapKind = {
  table: rewardReadModel.table,
  ownerColumn: 'card_id',
  countedCondition: 'r.deleted_at is null',
  label: 'rewards of this card',
  resolution: 'Delete one first.',
};
