/** Lists the ISO 639 codes of the translations, English first, because a negotiation without a match takes the first. */
export const LANGUAGE_CODES = ['en', 'de', 'fr', 'es'];

/** Texts in one language. @property locale for dates and numbers in them */
export type Localization<T> = { t: T; locale: string };

/**
 * Returns the translations for a locale's language, or English if there are none.
 * @param languages by ISO 639 code
 * @param locale a BCP 47 tag
 * @returns `locale` unchanged for dates and numbers, or `en` with the English translations
 */
export function getTranslations<T>(
  languages: { en: T } & Partial<Record<string, T>>,
  locale: string,
): Localization<T> {
  const { language } = new Intl.Locale(locale);
  const t = Object.hasOwn(languages, language) ? languages[language] : undefined;
  return t ? { t, locale } : { t: languages.en, locale: 'en' };
}
