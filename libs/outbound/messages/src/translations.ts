import { getTranslations, type Localization } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type Translations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
export const LANGUAGES = { de, en, es, fr };

/** @param locale of the store */
export function findMessageTranslations(locale: string): Localization<Translations> {
  return getTranslations(LANGUAGES, locale);
}
