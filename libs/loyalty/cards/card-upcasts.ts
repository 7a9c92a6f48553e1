import type { Upcast } from '#platform/kernel/aggregate.js';
import type { CardCreated, CardEvent, CardMessages, CardUpdated } from './card.events.js';

type CardCreatedOfVersion1 = Omit<CardCreated['data'], keyof CardMessages | 'barcodeFormat'>;

/** Converts events of earlier versions to the shape of today. */
export const cardUpcasts = {
  CardCreated: [
    (data: CardCreatedOfVersion1): CardCreated['data'] => ({
      ...data,
      barcodeFormat: 'qr',
      stampMessage: null,
      rewardMessage: null,
      redemptionMessage: null,
    }),
  ],
  CardUpdated: [(data: CardUpdated['data']): CardUpdated['data'] => data],
} satisfies { [T in CardEvent['type']]?: readonly Upcast[] };
