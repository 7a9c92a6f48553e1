import { getTranslations, type Localization } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type Translations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

export type { Translations };

/** To add a language, add a file like these and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

export type SignupLocalization = Localization<Translations>;

/** Finds the texts of a language. @param locale the store's, or the browser's */
export function findSignupTranslations(locale: string): SignupLocalization {
  return getTranslations(LANGUAGES, locale);
}
