/** What a stamping or a redemption may say about itself. The note is personal and stands sealed. */
export type ActionDetails = {
  locationId: number | null;
  staffRef: string | null;
  /** A receipt number: the same one again repeats the answer instead of the action. */
  externalRef: string | null;
  /** The pass is updated without a message to its holder. */
  silent: boolean;
  personal: { note: string } | null;
};

export type StampSource = 'api' | 'pos' | 'app_scan' | 'welcome_bonus' | 'adjustment';

export type CustomerCardIssued = {
  type: 'CustomerCardIssued';
  data: {
    id: number;
    accountId: number;
    customerId: number;
    cardId: number;
    uuid: string;
    /** 8 characters, the barcode's value. */
    code: string;
  };
};

export type StampsEarned = {
  type: 'StampsEarned';
  data: { customerId: number; stamps: number; source: StampSource } & ActionDetails;
};

/** Sent once per crossing: the reward as it was when it came within reach. */
export type RewardUnlocked = {
  type: 'RewardUnlocked';
  data: {
    customerId: number;
    rewardId: number;
    name: string;
    description: string | null;
    stampsRequired: number;
  };
};

export type RewardRedeemed = {
  type: 'RewardRedeemed';
  data: {
    customerId: number;
    redemptionId: number;
    rewardId: number;
    rewardName: string;
    stampsSpent: number;
    /**
     * Rewards that are out of reach again, by the thresholds in force at the redemption: the next crossing of
     * one is sent anew. Older events lack it; what they locked goes by the thresholds that were crossed.
     */
    locked?: number[];
  } & ActionDetails;
};

export type CustomerCardEvent = CustomerCardIssued | StampsEarned | RewardUnlocked | RewardRedeemed;
