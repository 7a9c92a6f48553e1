import { getTranslations } from '#kernel/languages.js';
import { de } from './words-de.js';
import { en, type Words } from './words-en.js';
import { es } from './words-es.js';
import { fr } from './words-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** @param locale of the store */
export function wordsOf(locale: string): { words: Words; locale: string } {
  const { translations: words, locale: textLocale } = getTranslations<Words>(LANGUAGES, locale);
  return { words, locale: textLocale };
}
