import { createHash } from 'node:crypto';
import { toCanonicalJson } from '#platform/event-store/port/canonical-json.js';
import type { AddressForm } from '#translations/address-form.js';
import {
  getCustomerTranslations,
  type CustomerLanguage,
  type Localization,
} from '#translations/translations.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Poster } from '#loyalty/posters/poster.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import type { PosterDesign } from './poster-design.js';
import { getNameForCustomers } from '#loyalty/accounts/account.js';

/** More offers would be too small to read from afar. */
const MAX_OFFERS = 3;
/** Of the field `title`. */
export const MAX_TITLE_LENGTH = 255;

export type Offer = { reward: string; price: string };

/** Holds everything that a poster shows, in any size. */
export type PosterContent = {
  design: PosterDesign;
  title: string;
  storeName: string;
  /** The hash of the logo's design on the poster's ground; null without one. */
  logo: string | null;
  /** Whether the name of the store stands in its logo. */
  logoContainsName: boolean;
  /** BCP 47. */
  locale: string;
  addressForm: AddressForm | null;
  offers: Offer[];
  /** The call to action of a card without rewards. */
  aim: string;
  stamps: { count: number; icon: string; rewards: number[] };
  colors: { ground: string; text: string; stamps: string };
  /** The text of the QR code. */
  code: string;
  /** The same address, for people to type. */
  address: string;
  createdAt: string;
};

/** What a poster that may not be saved shows of itself. */
export type PosterLook = Pick<
  Poster,
  'title' | 'primaryColor' | 'textColor' | 'secondaryColor' | 'createdAt'
>;

export type PosterParts = {
  poster: PosterLook;
  design: PosterDesign;
  card: Card;
  /** All rewards of the card. */
  rewards: Reward[];
  store: CustomerLanguage & { name: string };
  logo: string | null;
  logoContainsName: boolean;
  urls: { signup: string; code: string };
};

/** Creates the title of a poster that has none of its own: the reward of a full card, or the name of the card. */
export function createHeadline({
  card,
  rewards,
  store,
}: Pick<PosterParts, 'card' | 'rewards' | 'store'>): string {
  const reward = listOffered(card, rewards).at(-1);
  const headline = reward && renderHeadline(reward, getCustomerTranslations(store));
  return headline === undefined || headline.length > MAX_TITLE_LENGTH ? card.name : headline;
}

function renderHeadline({ name, stampsRequired }: Reward, { t }: Localization): string {
  return t.poster.headline({ reward: name, count: stampsRequired });
}

/** Lists the rewards that one card is enough for, cheapest first. */
function listOffered(card: Card, rewards: readonly Reward[]): Reward[] {
  return rewards
    .filter(
      ({ active, deletedAt, stampsRequired }) =>
        active && deletedAt === null && stampsRequired <= card.stampsRequired,
    )
    .sort((a, b) => a.stampsRequired - b.stampsRequired || a.id - b.id);
}

export function createPosterContent({
  poster,
  design,
  card,
  rewards,
  store,
  logo,
  logoContainsName,
  urls,
}: PosterParts): PosterContent {
  const localization = getCustomerTranslations(store);
  const offered = listOffered(card, rewards);
  return {
    design,
    title: poster.title,
    storeName: getNameForCustomers(store.name, card),
    logo,
    logoContainsName,
    locale: localization.locale,
    addressForm: store.addressForm,
    // What the title says already stands on the poster once.
    offers: selectOffers(
      design === 'code'
        ? []
        : offered.filter((reward) => renderHeadline(reward, localization) !== poster.title),
    ).map(({ name, stampsRequired }) => ({
      reward: name,
      price: localization.t.poster.offer({ count: stampsRequired }),
    })),
    aim: localization.t.poster.collect({ count: card.stampsRequired }),
    stamps: {
      count: card.stampsRequired,
      icon: card.stampIcon,
      rewards: [...new Set(offered.map(({ stampsRequired }) => stampsRequired))],
    },
    colors: {
      ground: poster.primaryColor,
      text: poster.textColor,
      stamps: poster.secondaryColor,
    },
    code: urls.code,
    // Browsers add the scheme.
    address: urls.signup.replace(/^https:\/\//, ''),
    createdAt: poster.createdAt,
  };
}

/** Lists the texts that stores have written: only in these may there be letters that Inter lacks. */
export function listTexts({ title, storeName, offers }: PosterContent): string[] {
  return [title, storeName, ...offers.map(({ reward }) => reward)];
}

/** Hashes a value, in hex: posters with the same hash look the same. */
export function hashJson(value: unknown): string {
  return createHash('sha256').update(toCanonicalJson(value)).digest('hex');
}

/** Selects the first rewards, and the one at the end of the card. */
function selectOffers<R>(rewards: R[]): R[] {
  if (rewards.length <= MAX_OFFERS) return rewards;
  return [...rewards.slice(0, MAX_OFFERS - 1), ...rewards.slice(-1)];
}
