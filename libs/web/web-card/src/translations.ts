import { wordsIn } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type CardTranslations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** The languages there are, for choosing one by what a browser asks for. English is first: whoever asks for none gets it. */
export const cardLanguages = ['en', ...Object.keys(LANGUAGES).filter((code) => code !== 'en')];

export type CardLocalization = { t: CardTranslations; locale: string };

/** @param locale of the store */
export function findCardTranslations(locale: string): CardLocalization {
  const { words: t, locale: textLocale } = wordsIn<CardTranslations>(LANGUAGES, locale);
  return { t, locale: textLocale };
}
