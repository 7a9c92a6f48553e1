import type { Card } from '#loyalty/cards/card.js';
import type { Poster } from '#loyalty/posters/poster.js';

/** @property signups the customers who signed up there @property scanned how many of them by its code */
export type ListedPoster = { poster: Poster; card: Card; signups: number; scanned: number };

export type CardChoice = { id: number; name: string };
