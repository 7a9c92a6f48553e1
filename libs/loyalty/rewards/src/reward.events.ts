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
