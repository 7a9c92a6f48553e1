import { de } from './words-de.js';
import { en, type Words } from './words-en.js';
import { es } from './words-es.js';
import { fr } from './words-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
const LANGUAGES: Partial<Record<string, Words>> = { de, en, es, fr };

/**
 * @param locale of the store, a BCP 47 tag
 * @returns `locale` as given for numbers, or English where there are no words in its language
 */
export function wordsOf(locale: string): { words: Words; locale: string } {
  const { language } = new Intl.Locale(locale);
  const words = Object.hasOwn(LANGUAGES, language) ? LANGUAGES[language] : undefined;
  return words ? { words, locale } : { words: en, locale: 'en' };
}
