import { getTranslations } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type Translations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
export const LANGUAGES = { de, en, es, fr };

/** @param locale of the store */
export function findTranslations(locale: string): { words: Translations; locale: string } {
  const { translations: words, locale: language } = getTranslations<Translations>(
    LANGUAGES,
    locale,
  );
  return { words, locale: language };
}
