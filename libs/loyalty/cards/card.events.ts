import type { EventTable } from '#platform/kernel/aggregate.js';

export type AuxiliaryField = { key: string; label: string | null; value: string };

export type BarcodeFormat = 'qr' | 'aztec' | 'pdf417' | 'code128';

/**
 * The texts that a store may write itself for what its customers are notified of (CARD-61). Null: the text of the
 * store's language.
 */
export type CardTexts = {
  stampMessage: string | null;
  rewardMessage: string | null;
  redemptionMessage: string | null;
};

/** The attributes of a card template that its shop can set. */
export type CardAttributes = {
  name: string;
  cardColor: string;
  textColor: string;
  stampIcon: string;
  stampColor: string;
  stampBackgroundColor: string;
  stampsRequired: number;
  initialStamps: number;
  showMemberField: boolean;
  showStampsToRewardField: boolean;
  auxiliaryFields: AuxiliaryField[];
  stripType: 'color' | 'image' | 'preset';
  stripColor: string | null;
  /** 0 to 100. */
  stripOpacity: number;
  stripPreset: string | null;
  headerText: string | null;
  /** ISO 8601; null: never. */
  expiresAt: string | null;
  maxStampsPerRequest: number | null;
  maxStampsPerDay: number | null;
  minSecondsBetweenStamps: number | null;
  barcodeFormat: BarcodeFormat;
} & CardTexts;

export type CardCreated = {
  type: 'CardCreated';
  data: { id: number; accountId: number } & CardAttributes;
};
export type CardUpdated = { type: 'CardUpdated'; data: Partial<CardAttributes> };
export type CardArchived = { type: 'CardArchived'; data: Record<string, never> };
export type CardUnarchived = { type: 'CardUnarchived'; data: Record<string, never> };

/**
 * A picture was uploaded, and is what the strip shows from now on.
 * @property picture SHA-256 of the stored PNG, in hex
 */
export type CardStripImageSet = { type: 'CardStripImageSet'; data: { picture: string } };

export type CardEvent =
  | CardCreated
  | CardUpdated
  | CardArchived
  | CardUnarchived
  | CardStripImageSet;

type CardCreatedOfVersion1 = Omit<CardCreated['data'], keyof CardTexts | 'barcodeFormat'>;

export const cardEvents = {
  CardCreated: {
    name: 'card.created',
    publishedAs: 'card.created',
    upcasts: [
      (data: CardCreatedOfVersion1) => ({
        ...data,
        barcodeFormat: 'qr',
        stampMessage: null,
        rewardMessage: null,
        redemptionMessage: null,
      }),
    ],
  },
  CardUpdated: {
    name: 'card.updated',
    publishedAs: 'card.updated',
    upcasts: [(data: CardUpdated['data']) => data],
  },
  CardArchived: { name: 'card.archived', publishedAs: 'card.archived' },
  CardUnarchived: { name: 'card.unarchived', publishedAs: 'card.unarchived' },
  CardStripImageSet: { name: 'card.strip_image_set', publishedAs: 'card.updated' },
} as const satisfies EventTable<CardEvent>;
