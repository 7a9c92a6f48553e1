import type { Card } from '#loyalty/cards/card.js';
import type { PassOffer } from '#outbound/passes/pass-content.js';
import { isSignupOpen, type Poster } from '#loyalty/posters/poster.js';
import type { FormSpec } from './signup-form.js';

/** A poster with the parts of its card and store that the form needs. */
export type SignupPoster = {
  poster: Poster;
  card: Card;
  /** The active rewards of the card, cheapest first. */
  offers: PassOffer[];
  /** @property smsCountries the countries that the store sends SMS to */
  store: FormSpec['store'] & {
    id: number;
    name: string;
    smsCountries: string[];
    /** SHA-256 of the logo, in hex. */
    logo: string | null;
    /** Whether the name of the store stands in its logo. */
    logoContainsName: boolean;
  };
};

/** Finds whether visitors can sign up now. `gone` is for ever. */
export function findAvailability(
  { poster, card }: SignupPoster,
  now: Date,
): 'open' | 'closed' | 'gone' {
  if (poster.deletedAt !== null) return 'gone';
  return isSignupOpen(poster, card, now) ? 'open' : 'closed';
}
