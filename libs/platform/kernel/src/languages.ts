/**
 * Returns the translations for a locale's language, or English if there are none.
 * @param languages by ISO 639 code
 * @param locale a BCP 47 tag
 * @returns `locale` unchanged for dates and numbers, or `en` with the English translations
 */
export function getTranslations<T>(
  languages: { en: T } & Partial<Record<string, T>>,
  locale: string,
): { translations: T; locale: string } {
  const { language } = new Intl.Locale(locale);
  const translations = Object.hasOwn(languages, language) ? languages[language] : undefined;
  return translations ? { translations, locale } : { translations: languages.en, locale: 'en' };
}
