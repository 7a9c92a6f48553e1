import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';

/** A card with its active rewards, cheapest first. @property holderCount the customers who have it */
export type DesignedCard = { card: Card; rewards: Reward[]; holderCount: number };

/** A card in the list. @property strip the address of a picture with some stamps */
export type ListedCard = { card: Card; rewardCount: number; holderCount: number; strip: string };

/** @property next the id to continue after; null: these are the last */
export type CardPage = { cards: ListedCard[]; next: number | null };
