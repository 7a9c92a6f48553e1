import type { Translations } from './translations.js';

/**
 * How a store addresses its customers, in languages that make a difference: `informal` is "du", "tu" and "tú", `formal`
 * is "Sie", "vous" and "usted".
 */
export const ADDRESS_FORMS = ['informal', 'formal'] as const;
export type AddressForm = (typeof ADDRESS_FORMS)[number];

/** The texts that customers read: on passes, cards, signup pages and posters, and in messages. */
export const CUSTOMER_SECTIONS = [
  'stamps',
  'wallet',
  'contact',
  'card',
  'notice',
  'applePass',
  'googlePass',
  'cardMessage',
  'holderMessages',
  'signup',
  'poster',
] as const satisfies readonly (keyof Translations)[];
