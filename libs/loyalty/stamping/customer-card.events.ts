import type { EventTable } from '#platform/kernel/aggregate.js';

/** The version of the card, its rewards and the store's settings that the decision was made with (ADR-0077). */
type DecidedWith<Version> = { templateVersion: Version };

/** The details that a stamping or a redemption may have. The note is personal and stored sealed. */
export type ActionDetails = {
  locationId: number | null;
  staffRef: string | null;
  /** A receipt number: used again, it repeats the response instead of the action. */
  externalRef: string | null;
  /** The pass is updated without a message to its holder. */
  silent: boolean;
  personal: { note: string } | null;
};

/** Counts the uses of the event's receipt number before it, which were all reversed; 0 without a number. */
export type ReceiptDetails = { receiptUse: number };

export type StampSource = 'api' | 'pos' | 'app_scan' | 'welcome_bonus' | 'adjustment';

export type CustomerCardIssued = {
  type: 'CustomerCardIssued';
  data: {
    id: number;
    accountId: number;
    customerId: number;
    cardId: number;
    uuid: string;
    /** 8 characters, the content of the barcode. */
    code: string;
  };
};

/** The details of a correction: its reason is the note. */
export type CorrectionDetails = ActionDetails &
  ReceiptDetails & {
    /** The id of the event that this one undoes; null when it undoes none. */
    reverses: string | null;
  };

export type StampsEarned = {
  type: 'StampsEarned';
  data: { customerId: number; stamps: number; source: StampSource } & CorrectionDetails &
    /** Null in events of version 1, which did not record it. */
    DecidedWith<number | null>;
};

export type StampsRemoved = {
  type: 'StampsRemoved';
  data: {
    customerId: number;
    /** Positive. */
    stamps: number;
    source: 'adjustment';
    /** When the stamping that this reverses happened, if the card's limits counted it: they no longer do. */
    countedAt?: string;
  } & CorrectionDetails;
};

/** An unlocked reward, with the stamps that it took then: until it is locked again it never takes more. */
export type UnlockedReward = { rewardId: number; stampsRequired: number };

/** Written once per crossing, with the fields that the reward had at that moment. */
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
     * Rewards that are locked again, by what they took on the card at the redemption; crossing one again unlocks it
     * anew.
     */
    locked: number[];
  } & ActionDetails &
    ReceiptDetails &
    DecidedWith<number>;
};

/** The card goes on as it is, in another customer's hands: theirs was merged, or unmerged. */
export type CustomerCardMoved = {
  type: 'CustomerCardMoved';
  data: { customerId: number; fromCustomerId: number };
};

/** The other customer had a card of the same template, which got all stamps of this one and goes on for it. */
export type CustomerCardMerged = {
  type: 'CustomerCardMerged';
  data: {
    customerId: number;
    fromCustomerId: number;
    intoId: number;
    stamps: number;
    unlocked: UnlockedReward[];
  };
};

/** The other side of CustomerCardMerged. StampsEarned follows if there were any. */
export type CustomerCardAbsorbed = {
  type: 'CustomerCardAbsorbed';
  data: {
    customerId: number;
    fromId: number;
    stamps: number;
    /** Rewards of the other card, which stay unlocked on this one, for the lower of the two thresholds. */
    unlocked: UnlockedReward[];
  };
};

/** The stamps that a merge has added go back, unless they were spent. StampsRemoved follows if there are any. */
export type CustomerCardUnmerged = {
  type: 'CustomerCardUnmerged';
  data: {
    customerId: number;
    restoredId: number;
    stamps: number;
    /** The stamps that were spent meanwhile. */
    missing: number;
  };
};

/** The other side of CustomerCardUnmerged: the card goes on by itself, in its former customer's hands. */
export type CustomerCardRestored = {
  type: 'CustomerCardRestored';
  data: { customerId: number; fromCustomerId: number; stamps: number; missing: number };
};

export type CustomerCardEvent =
  | CustomerCardIssued
  | StampsEarned
  | StampsRemoved
  | RewardUnlocked
  | RewardRedeemed
  | CustomerCardMoved
  | CustomerCardMerged
  | CustomerCardAbsorbed
  | CustomerCardUnmerged
  | CustomerCardRestored;

export const customerCardEvents = {
  CustomerCardIssued: { name: 'customer_card.created', publishedAs: 'customer_card.created' },
  StampsEarned: {
    name: 'stamp.earned',
    publishedAs: 'stamp.earned',
    balance: ({ stamps }) => stamps,
    upcasts: [
      (data: Omit<StampsEarned['data'], 'templateVersion' | 'receiptUse'>) => ({
        ...data,
        templateVersion: null,
      }),
      (data: Omit<StampsEarned['data'], 'receiptUse'>) => ({ ...data, receiptUse: 0 }),
    ],
  },
  StampsRemoved: {
    name: 'stamp.removed',
    publishedAs: 'stamp.removed',
    balance: ({ stamps }) => -stamps,
    upcasts: [(data: Omit<StampsRemoved['data'], 'receiptUse'>) => ({ ...data, receiptUse: 0 })],
  },
  RewardUnlocked: { name: 'reward.unlocked', publishedAs: 'reward.unlocked' },
  RewardRedeemed: {
    name: 'reward.redeemed',
    publishedAs: 'reward.redeemed',
    balance: ({ stampsSpent }) => -stampsSpent,
    upcasts: [(data: Omit<RewardRedeemed['data'], 'receiptUse'>) => ({ ...data, receiptUse: 0 })],
  },
  CustomerCardMoved: { name: 'customer_card.moved', publishedAs: null },
  CustomerCardMerged: { name: 'customer_card.merged', publishedAs: null },
  CustomerCardAbsorbed: { name: 'customer_card.absorbed', publishedAs: null },
  CustomerCardUnmerged: { name: 'customer_card.unmerged', publishedAs: null },
  CustomerCardRestored: { name: 'customer_card.restored', publishedAs: null },
} as const satisfies EventTable<CustomerCardEvent>;
