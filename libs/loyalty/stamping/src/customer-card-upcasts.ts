import type { Upcast } from '#kernel/aggregate.js';
import type {
  CustomerCardAbsorbed,
  CustomerCardEvent,
  CustomerCardMerged,
  RewardRedeemed,
  StampsEarned,
} from './customer-card.events.js';

type StampsEarned1 = Omit<StampsEarned['data'], 'templateVersion' | 'reverses'>;
type RewardRedeemed1 = Omit<RewardRedeemed['data'], 'templateVersion' | 'locked'> & {
  /** The first events lack it. */
  locked?: number[];
};
type CustomerCardMerged1 = Omit<CustomerCardMerged['data'], 'unlocked'>;
type CustomerCardAbsorbed1 = Omit<CustomerCardAbsorbed['data'], 'unlocked'>;

/** The shapes that events of earlier versions have, and what makes them those of today. */
export const customerCardUpcasts = {
  StampsEarned: [
    (data: StampsEarned1): StampsEarned['data'] => ({
      ...data,
      reverses: null,
      templateVersion: null,
    }),
  ],
  RewardRedeemed: [
    (data: RewardRedeemed1): RewardRedeemed['data'] => ({
      ...data,
      locked: data.locked ?? null,
      templateVersion: null,
    }),
  ],
  CustomerCardMerged: [
    (data: CustomerCardMerged1): CustomerCardMerged['data'] => ({ ...data, unlocked: null }),
  ],
  CustomerCardAbsorbed: [
    (data: CustomerCardAbsorbed1): CustomerCardAbsorbed['data'] => ({ ...data, unlocked: null }),
  ],
} satisfies { [T in CustomerCardEvent['type']]?: readonly Upcast[] };
