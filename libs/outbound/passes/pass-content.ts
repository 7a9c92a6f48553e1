import { createHash } from 'node:crypto';
import { toCanonicalJson } from '#platform/event-store/port/canonical-json.js';
import type { AddressForm } from '#translations/address-form.js';
import type { ContactDetails } from '#loyalty/accounts/account.events.js';
import type { Card } from '#loyalty/cards/card.js';
import type { CardTexts } from '#loyalty/cards/card.events.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { priceRewards, findTarget, type Milestone } from '#loyalty/stamping/unlocked-rewards.js';
import { getNameForCustomers } from '#loyalty/accounts/account.js';

/** Apple accepts ten in a pass, and Google ten in an object. */
const MAX_LOCATIONS = 10;

/** A reward as the card offers it to everybody. */
export type PassOffer = Omit<Milestone, 'active'>;

/** A reward on this pass, with the stamps that it takes there. */
export type PassReward = PassOffer & {
  /** Whether the balance is enough for it. */
  available: boolean;
};

/** The visible part of a card template, except its rewards. */
export type PassAppearance = Omit<
  Card,
  | 'id'
  | 'accountId'
  | 'initialStamps'
  | 'maxStampsPerRequest'
  | 'maxStampsPerDay'
  | 'minSecondsBetweenStamps'
  | keyof CardTexts
  | 'archivedAt'
  | 'createdAt'
  | 'updatedAt'
>;

export type PassLocation = { name: string; latitude: number; longitude: number };

/**
 * Everything that any form of a pass shows, so that a pass whose content is the same need not be sent again. Nothing
 * in it depends on the time: the phone and the page know themselves when a card has expired.
 */
export type PassContent = {
  customerCardId: number;
  /** The holder of the card; shown nowhere. */
  customerId: number;
  accountId: number;
  cardId: number;
  uuid: string;
  /** The barcode's value. */
  code: string;
  /** void: the customer was erased, or the card merged into another one. An archived card stays valid. */
  state: 'valid' | 'void';
  storeName: string;
  /** SHA-256 of the store's logo, in hex; null: the stamp icon stands in its place. */
  logo: string | null;
  /** Whether the name of the store stands in its logo. */
  logoContainsName: boolean;
  contact: ContactDetails;
  /** BCP 47. */
  locale: string;
  addressForm: AddressForm | null;
  timeZone: string;
  card: PassAppearance;
  /** The texts of notifications, which a pass itself does not show. */
  messages: CardTexts;
  /** Null when the card does not show the member, or the customer was erased. */
  memberName: string | null;
  stampsCount: number;
  /** Active rewards, cheapest first, with the stamps that they take on this card. */
  rewards: PassReward[];
  /** The same with the stamps that they take when none is unlocked, which all passes of the card share. */
  offers: PassOffer[];
  /** Stamps to the next active reward, else to a full card; null when the card does not show them. */
  stampsToReward: number | null;
  /** ISO 8601; null: never. */
  expiresAt: string | null;
  /** Nearest first; precise enough for a lock screen. */
  locations: PassLocation[];
};

/** The part of a pass that its images show. */
export type PictureContent = Pick<
  PassContent,
  'accountId' | 'card' | 'logo' | 'offers' | 'stampsCount'
>;

/** The rows that a pass is made from. */
export type PassParts = {
  customerCard: CustomerCard;
  card: Card;
  /** Cheapest first. */
  rewards: Milestone[];
  store: {
    name: string;
    locale: string;
    addressForm: AddressForm | null;
    timeZone: string;
    logo: string | null;
    logoContainsName: boolean;
    contact: ContactDetails;
  };
  /** Null: the customer was erased. */
  member: { firstName: string; lastName: string | null } | null;
  /** In the order of preference. */
  locations: PassLocation[];
};

export function createPassContent(parts: PassParts): PassContent {
  const { customerCard, card, store, member, locations } = parts;
  const { stampsCount } = customerCard;
  const priced = priceRewards(parts.rewards, customerCard.unlocked);
  const rewards = findActiveOffers(priced).map((offer) => ({
    ...offer,
    available: offer.stampsRequired <= stampsCount,
  }));
  const { stampsRequired } = card;
  const target = findTarget(stampsCount, { stampsRequired, rewards: priced });
  const named = member && [member.firstName, member.lastName].filter(Boolean).join(' ');
  return {
    customerCardId: customerCard.id,
    customerId: customerCard.customerId,
    accountId: customerCard.accountId,
    cardId: card.id,
    uuid: customerCard.uuid,
    code: customerCard.code,
    state: member === null || customerCard.mergedInto ? 'void' : 'valid',
    storeName: getNameForCustomers(store.name, card),
    logo: store.logo,
    logoContainsName: store.logoContainsName,
    contact: store.contact,
    locale: store.locale,
    addressForm: store.addressForm,
    timeZone: store.timeZone,
    card: toAppearance(card),
    messages: {
      stampMessage: card.stampMessage,
      rewardMessage: card.rewardMessage,
      redemptionMessage: card.redemptionMessage,
    },
    memberName: card.showMemberField && named ? named : null,
    stampsCount,
    rewards,
    offers: findActiveOffers(parts.rewards),
    stampsToReward: card.showStampsToRewardField ? Math.max(0, target - stampsCount) : null,
    expiresAt: card.expiresAt,
    locations: locations.slice(0, MAX_LOCATIONS),
  };
}

/** Hashes a content. The hash is equal for contents that show the same. */
export function hashContent(content: PassContent): string {
  const { customerId: _customerId, messages: _messages, ...visible } = content;
  return createHash('sha256').update(toCanonicalJson(visible)).digest('base64url');
}

/** Finds what a card offers to everybody. @param rewards cheapest first */
export function findActiveOffers(rewards: Milestone[]): PassOffer[] {
  return rewards
    .filter(({ active }) => active)
    .map(({ id, name, description, stampsRequired }) => ({
      id,
      name,
      description,
      stampsRequired,
    }));
}

function toAppearance(card: Card): PassAppearance {
  const {
    id: _id,
    accountId: _accountId,
    initialStamps: _initialStamps,
    maxStampsPerRequest: _maxStampsPerRequest,
    maxStampsPerDay: _maxStampsPerDay,
    minSecondsBetweenStamps: _minSecondsBetweenStamps,
    stampMessage: _stampMessage,
    rewardMessage: _rewardMessage,
    redemptionMessage: _redemptionMessage,
    archivedAt: _archivedAt,
    createdAt: _createdAt,
    updatedAt: _updatedAt,
    ...appearance
  } = card;
  return appearance;
}
