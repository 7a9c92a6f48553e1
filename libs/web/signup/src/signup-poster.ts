import type { Card } from '#cards/card.js';
import type { Poster } from '#posters/poster.js';
import type { FormSpec } from './signup-form.js';

/** A poster with the parts of its card and store that the form needs. */
export type SignupPoster = {
  poster: Poster;
  card: Pick<Card, 'id' | 'name' | 'archivedAt' | 'expiresAt'>;
  /** @property smsCountries the countries that the store sends SMS to */
  store: FormSpec['store'] & { id: number; name: string; smsCountries: string[] };
};

/** Finds whether visitors can sign up now. `gone` is for ever. */
export function findAvailability(
  { poster, card }: SignupPoster,
  now: Date,
): 'open' | 'closed' | 'gone' {
  if (poster.deletedAt !== null) return 'gone';
  const expired = card.expiresAt !== null && new Date(card.expiresAt) <= now;
  return poster.active && card.archivedAt === null && !expired ? 'open' : 'closed';
}
