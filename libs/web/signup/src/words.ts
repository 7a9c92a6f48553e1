import { getTranslations } from '#kernel/languages.js';
import { de } from './words-de.js';
import { en, type Words } from './words-en.js';
import { es } from './words-es.js';
import { fr } from './words-fr.js';

export type { Words };

/** To add a language: a file like these, and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

/** English is first: whoever asks for none of them gets it. */
export const languages = ['en', ...Object.keys(LANGUAGES).filter((code) => code !== 'en')];

export type Told = { words: Words; locale: string };

/** @param locale of the store, or of a browser */
export function wordsOf(locale: string): Told {
  const { translations: words, locale: textLocale } = getTranslations<Words>(LANGUAGES, locale);
  return { words, locale: textLocale };
}
