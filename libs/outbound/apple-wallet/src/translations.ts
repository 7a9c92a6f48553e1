import { getTranslations, type Localization } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type AppleTranslations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language, add a file like these and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** Returns the texts of a language. @param locale the store's */
export function getAppleTranslations(locale: string): Localization<AppleTranslations> {
  return getTranslations(LANGUAGES, locale);
}
