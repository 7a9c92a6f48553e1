import type { EventTable } from '#platform/kernel/aggregate.js';

export type RewardAttributes = {
  name: string;
  description: string | null;
  /** Its price in stamps. */
  stampsRequired: number;
  /** Order among the card's rewards, from 0. */
  position: number;
  active: boolean;
};

export type RewardCreated = {
  type: 'RewardCreated';
  data: { id: number; accountId: number; cardId: number } & RewardAttributes;
};
export type RewardUpdated = { type: 'RewardUpdated'; data: Partial<RewardAttributes> };
export type RewardDeleted = { type: 'RewardDeleted'; data: Record<string, never> };

export type RewardEvent = RewardCreated | RewardUpdated | RewardDeleted;

export const rewardEvents = {
  RewardCreated: { name: 'reward.created', publishedAs: 'reward.created' },
  RewardUpdated: { name: 'reward.updated', publishedAs: 'reward.updated' },
  RewardDeleted: { name: 'reward.deleted', publishedAs: 'reward.deleted' },
} as const satisfies EventTable<RewardEvent>;
