import { wordsIn } from '#kernel/languages.js';
import { de } from './translations-de.js';
import { en, type PosterTranslations } from './translations-en.js';
import { es } from './translations-es.js';
import { fr } from './translations-fr.js';

/** To add a language: a file like these, and its ISO 639 code here. */
const LANGUAGES = { de, en, es, fr };

export type PosterLocalization = { t: PosterTranslations; locale: string };

/** @param locale of the store */
export function findPosterTranslations(locale: string): PosterLocalization {
  const { words: t, locale: textLocale } = wordsIn<PosterTranslations>(LANGUAGES, locale);
  return { t, locale: textLocale };
}
