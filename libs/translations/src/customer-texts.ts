import type { Translations } from './en.js';

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

type Changes<T> = T extends string | ((...values: never[]) => string)
  ? T
  : { readonly [Name in keyof T]?: Changes<T[Name]> };

/** The texts for customers that are different in another address form. */
export type CustomerTextChanges = Changes<Pick<Translations, (typeof CUSTOMER_SECTIONS)[number]>>;

/** Returns the texts with some of them replaced. */
export function changeTexts(texts: Translations, changes: CustomerTextChanges): Translations {
  return merge(texts, changes) as Translations;
}

function merge(texts: object, changes: object): object {
  const merged = Object.entries(changes).map(([name, change]) => {
    const text: unknown = texts[name as keyof typeof texts];
    const isSection = typeof change === 'object' && typeof text === 'object' && text !== null;
    return [name, isSection ? merge(text, change) : change];
  });
  return { ...texts, ...Object.fromEntries(merged) };
}
