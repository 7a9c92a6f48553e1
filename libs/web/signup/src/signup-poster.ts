import type { Card } from '#cards/card.js';
import type { Poster } from '#posters/poster.js';
import type { FormSpec } from './signup-form.js';

/** A poster with what its form needs of card and store. */
export type SignupPoster = {
  poster: Poster;
  card: Pick<Card, 'id' | 'name' | 'archivedAt' | 'expiresAt'>;
  /** @property smsCountries that the store sends SMS to */
  store: FormSpec['store'] & { id: number; name: string; smsCountries: string[] };
};

/** Whether somebody may sign up now. `gone` is for ever. */
export function findAvailability(
  { poster, card }: SignupPoster,
  now: Date,
): 'open' | 'closed' | 'gone' {
  if (poster.deletedAt !== null) return 'gone';
  const expired = card.expiresAt !== null && new Date(card.expiresAt) <= now;
  return poster.active && card.archivedAt === null && !expired ? 'open' : 'closed';
}
