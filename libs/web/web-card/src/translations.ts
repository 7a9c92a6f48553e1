import { getTranslations, type Localization } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type CardTranslations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language, add a file like these, and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

export type CardLocalization = Localization<CardTranslations>;

/** Finds the texts in the language of a store, or in English. @param locale a BCP 47 tag */
export function findCardTranslations(locale: string): CardLocalization {
  return getTranslations(LANGUAGES, locale);
}
