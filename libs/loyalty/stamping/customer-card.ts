import {
  requireState,
  assertNever,
  defineAggregate,
  type RecordedEvent,
} from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { isExpired } from '#loyalty/cards/card.js';
import {
  absorbUnlocked,
  endAdding,
  giveBackUnlocked,
  lockRewards,
  unlockReward,
  type Absorption,
} from './absorptions.js';
import {
  CardMergedError,
  changeHolder,
  isHeldBy,
  type CardPath,
  type Holder,
} from './card-holder.js';
import {
  customerCardEvents,
  type ActionDetails,
  type CustomerCardEvent,
  type ReceiptDetails,
  type RewardRedeemed,
  type StampsEarned,
  type StampsRemoved,
  type StampSource,
  type UnlockedReward,
} from './customer-card.events.js';
import { assertOccurredAt, getOccurredAt } from './occurred-at.js';
import {
  NO_STAMPINGS,
  assertWithinLimits,
  isStamping,
  withoutStamping,
  withStamping,
  type StampLimits,
  type Stampings,
} from './stamp-limits.js';
import { priceRewards, createUnlocks, type Milestone } from './unlocked-rewards.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

/** A customer's enrolled card. */
export type CustomerCard = {
  id: number;
  accountId: number;
  cardId: number;
  uuid: string;
  code: string;
  stampsCount: number;
  unlocked: UnlockedReward[];
  redeemedRewardIds: number[];
  /** The imported stamps, less what imports took back. Without those of absorbed cards. */
  importedStamps: number;
  /** What the card's limits are checked against. */
  stampings: Stampings;
  issuedAt: string;
  updatedAt: string;
  /** The card that got its stamps in a merge and goes on for it. */
  mergedInto?: CardPath & { stamps: number };
  /** Cards that were merged into this one, the last one last. */
  absorptions?: Absorption[];
} & Holder;

/** The attributes of a card template and its store that stamping needs. */
export type Template = StampLimits & {
  cardId: number;
  /** Grows with every write to the card, its rewards or its store. */
  version: number;
  name: string;
  stampsRequired: number;
  initialStamps: number;
  expiresAt: string | null;
  archivedAt: string | null;
  /** Not deleted; cheapest first. */
  rewards: Milestone[];
};

/** The attributes of a template that the JSON of a customer card shows. */
export type ShownTemplate = Pick<Template, 'name' | 'stampsRequired' | 'expiresAt' | 'rewards'>;

/** The channel of imported stamps. */
export const IMPORT_CHANNEL = 'import';

/** The details of stamps that no client gave. */
export const NO_DETAILS = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  receiptUse: 0,
  personal: null,
} as const satisfies Omit<ActionDetails & ReceiptDetails, 'silent'>;

export const customerCard = defineAggregate<CustomerCard, CustomerCardEvent>({
  name: 'customer_card',
  table: 'customer_cards',
  events: customerCardEvents,
  evolveVersion: 3,
  evolve(state, event) {
    const updatedAt = event.meta.recordedAt;
    switch (event.type) {
      case 'CustomerCardIssued':
        return {
          ...event.data,
          stampsCount: 0,
          unlocked: [],
          redeemedRewardIds: [],
          importedStamps: 0,
          stampings: NO_STAMPINGS,
          issuedAt: event.meta.occurredAt,
          updatedAt,
        };
      case 'StampsEarned':
        return { ...withStamps(requireState(state), event), updatedAt };
      case 'StampsRemoved':
        return { ...withoutStamps(requireState(state), event), updatedAt };
      case 'RewardUnlocked':
        return { ...unlockReward(requireState(state), event.data), updatedAt };
      case 'RewardRedeemed':
        return { ...withRedemption(requireState(state), event.data), updatedAt };
      case 'CustomerCardMoved':
        return { ...changeHolder(requireState(state), event.data), updatedAt };
      case 'CustomerCardMerged': {
        const { customerId, intoId: id, stamps } = event.data;
        const card = changeHolder(requireState(state), event.data);
        return { ...card, mergedInto: { customerId, id, stamps }, updatedAt };
      }
      case 'CustomerCardRestored': {
        const { mergedInto: _, ...card } = requireState(state);
        return { ...changeHolder(endAdding(card), event.data), updatedAt };
      }
      case 'CustomerCardAbsorbed': {
        const { fromId, unlocked } = event.data;
        return { ...absorbUnlocked(requireState(state), fromId, unlocked), updatedAt };
      }
      case 'CustomerCardUnmerged': {
        const { restoredId, stamps } = event.data;
        const card = requireState(state);
        return { ...giveBackUnlocked(card, restoredId, card.stampsCount - stamps), updatedAt };
      }
      default:
        return assertNever(event);
    }
  },
});

function withStamps(card: CustomerCard, event: RecordedEvent<StampsEarned>): CustomerCard {
  const { data, meta } = event;
  const { stamps, source } = data;
  return {
    ...(isMovedByMerge(data) ? card : endAdding(card)),
    stampsCount: card.stampsCount + stamps,
    importedStamps: card.importedStamps + (isImported(event) ? stamps : 0),
    stampings: isStamping(source)
      ? withStamping(card.stampings, Date.parse(meta.occurredAt), stamps)
      : card.stampings,
  };
}

function withoutStamps(card: CustomerCard, event: RecordedEvent<StampsRemoved>): CustomerCard {
  const { stamps, countedAt } = event.data;
  return {
    ...card,
    stampsCount: card.stampsCount - stamps,
    importedStamps: card.importedStamps - (isImported(event) ? stamps : 0),
    stampings:
      countedAt === undefined
        ? card.stampings
        : withoutStamping(card.stampings, Date.parse(countedAt), stamps),
  };
}

/** Tells whether an import has carried these stamps over, or taken them back. */
function isImported({ data, meta }: RecordedEvent<StampsEarned | StampsRemoved>): boolean {
  return meta.channel === IMPORT_CHANNEL && data.source === 'adjustment' && !isMovedByMerge(data);
}

/** Tells whether a merge or unmerge wrote it. An adjustment has a reason instead, and its holder is notified. */
export function isMovedByMerge({
  source,
  silent,
  reverses,
  personal,
}: (StampsEarned | StampsRemoved)['data']): boolean {
  return source === 'adjustment' && silent && reverses === null && personal === null;
}

function withRedemption(
  card: CustomerCard,
  { rewardId, stampsSpent, locked }: RewardRedeemed['data'],
): CustomerCard {
  return {
    ...lockRewards(card, ({ rewardId }) => locked.includes(rewardId)),
    stampsCount: card.stampsCount - stampsSpent,
    redeemedRewardIds: card.redeemedRewardIds.includes(rewardId)
      ? card.redeemedRewardIds
      : [...card.redeemedRewardIds, rewardId],
  };
}

/** Returns what a redemption locks of the card that it was made on. */
export function findLocked(
  card: CustomerCard,
  { locked }: RewardRedeemed['data'],
): UnlockedReward[] {
  return card.unlocked.filter(({ rewardId }) => locked.includes(rewardId));
}

/** Refuses to enrol customers on archived and expired cards (CCARD-26). */
export function assertOpenForEnrolment(
  card: Pick<Template, 'archivedAt' | 'expiresAt'>,
  now: Date,
): void {
  if (card.archivedAt !== null) throw new RejectedError({ card_id: [ISSUES.card_archived] });
  if (isExpired(card, now)) throw new RejectedError({ card_id: [ISSUES.card_expired] });
}

/** Enrols a customer, with the card's welcome stamps and the rewards that they unlock. */
export function issue(
  ids: { id: number; accountId: number; customerId: number; uuid: string; code: string },
  template: Template,
): CustomerCardEvent[] {
  const { customerId } = ids;
  const issued: CustomerCardEvent = {
    type: 'CustomerCardIssued',
    data: { ...ids, cardId: template.cardId },
  };
  if (template.initialStamps === 0) return [issued];
  const welcome: CustomerCardEvent = {
    type: 'StampsEarned',
    data: {
      customerId,
      stamps: template.initialStamps,
      source: 'welcome_bonus',
      ...NO_DETAILS,
      silent: true,
      reverses: null,
      templateVersion: template.version,
    },
  };
  return [issued, welcome, ...createUnlocks(customerId, template.initialStamps, [], template)];
}

export type Stamp = ActionDetails &
  ReceiptDetails & {
    customerId: number;
    stamps: number;
    source: StampSource;
    /** When it happened, if that is not now. */
    occurredAt: Date | undefined;
  };

export function stamp(
  state: CustomerCard | undefined,
  template: Template,
  command: Stamp,
  now: Date,
): CustomerCardEvent[] {
  const card = getHeldCard(state, command.customerId);
  const { occurredAt, ...details } = command;
  const data = { ...details, templateVersion: template.version };
  assertOccurredAt(card, occurredAt, now);
  assertNotExpired(template, now);
  const at = getOccurredAt(card, occurredAt) ?? now;
  assertWithinLimits(card.stampings, template, command.stamps, at);
  const { customerId } = card;
  return [
    { type: 'StampsEarned', data: { ...data, customerId, reverses: null } },
    ...createUnlocks(card.customerId, card.stampsCount + command.stamps, card.unlocked, template),
  ];
}

export type Redeem = ActionDetails &
  ReceiptDetails & {
    customerId: number;
    redemptionId: number;
    rewardId: number;
    occurredAt: Date | undefined;
  };

export function redeem(
  state: CustomerCard | undefined,
  template: Template,
  command: Redeem,
  now: Date,
): CustomerCardEvent[] {
  const card = getHeldCard(state, command.customerId);
  const { occurredAt, ...data } = command;
  assertOccurredAt(card, occurredAt, now);
  const rewards = priceRewards(template.rewards, card.unlocked);
  const reward = rewards.find(({ id }) => id === command.rewardId);
  if (!reward) throw new NotFoundError('Reward');
  assertNotExpired(template, now);
  if (!reward.active) {
    throw createStampingError(
      { base: [ISSUES.reward_inactive] },
      'reward_inactive',
      'Choose one of the available_rewards of the customer card.',
    );
  }
  if (card.stampsCount < reward.stampsRequired) {
    throw createStampingError(
      {
        base: [
          ISSUES.reward_too_expensive({
            required: reward.stampsRequired,
            stamps: card.stampsCount,
          }),
        ],
      },
      'insufficient_stamps',
      'Collect the missing stamps first, or choose one of the available_rewards of the customer card.',
    );
  }
  return [
    {
      type: 'RewardRedeemed',
      data: {
        ...data,
        customerId: card.customerId,
        rewardName: reward.name,
        stampsSpent: reward.stampsRequired,
        locked: findRelocked(card, rewards, card.stampsCount - reward.stampsRequired),
        templateVersion: template.version,
      },
    },
  ];
}

/** Finds the unlocked rewards that a balance no longer covers, by what they take on the card now. */
function findRelocked(card: CustomerCard, rewards: Milestone[], stampsCount: number): number[] {
  const within = new Set(
    rewards.filter((reward) => reward.stampsRequired <= stampsCount).map(({ id }) => id),
  );
  return card.unlocked.map(({ rewardId }) => rewardId).filter((id) => !within.has(id));
}

/** Gets the status; expired comes before completed (CCARD-08). */
export function getCardStatus(
  stampsCount: number,
  template: Pick<Template, 'stampsRequired' | 'expiresAt'>,
  now: Date,
): 'active' | 'completed' | 'expired' {
  if (isExpired(template, now)) return 'expired';
  return stampsCount >= template.stampsRequired ? 'completed' : 'active';
}

/** @throws NotFoundError, CardMergedError */
export function getHeldCard(state: CustomerCard | undefined, customerId: number): CustomerCard {
  if (!state || !isHeldBy(state, customerId)) throw new NotFoundError('Customer card');
  if (state.mergedInto) throw new CardMergedError(state.mergedInto);
  return state;
}

function assertNotExpired(template: Template, now: Date): void {
  if (isExpired(template, now)) {
    throw createStampingError(
      { base: [ISSUES.card_expired_at({ time: String(template.expiresAt) })] },
      'card_expired',
      "Move the card's expires_at if it should go on.",
    );
  }
}
