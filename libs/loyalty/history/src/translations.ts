import { getTranslations, type Localization } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type Translations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** Lists the languages. To add one, write a file like these and add its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** @param locale of the store */
export function findHistoryTranslations(locale: string): Localization<Translations> {
  return getTranslations(LANGUAGES, locale);
}
