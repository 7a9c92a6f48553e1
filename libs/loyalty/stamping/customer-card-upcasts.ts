import type { Upcast } from '#platform/kernel/aggregate.js';
import type {
  CustomerCardEvent,
  RewardRedeemed,
  StampsEarned,
  StampsRemoved,
} from './customer-card.events.js';

type StampsEarnedOfVersion2 = Omit<StampsEarned['data'], 'receiptUse'>;

/** Converts events of earlier versions to the shape of today. */
export const customerCardUpcasts = {
  StampsEarned: [
    (data: Omit<StampsEarnedOfVersion2, 'templateVersion'>): StampsEarnedOfVersion2 => ({
      ...data,
      templateVersion: null,
    }),
    (data: StampsEarnedOfVersion2): StampsEarned['data'] => ({ ...data, receiptUse: 0 }),
  ],
  StampsRemoved: [
    (data: Omit<StampsRemoved['data'], 'receiptUse'>): StampsRemoved['data'] => ({
      ...data,
      receiptUse: 0,
    }),
  ],
  RewardRedeemed: [
    (data: Omit<RewardRedeemed['data'], 'receiptUse'>): RewardRedeemed['data'] => ({
      ...data,
      receiptUse: 0,
    }),
  ],
} satisfies { [T in CustomerCardEvent['type']]?: readonly Upcast[] };
