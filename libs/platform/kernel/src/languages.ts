/**
 * The words of a locale's language, or English where there are none in it.
 * @param languages by ISO 639 code
 * @param locale a BCP 47 tag
 * @returns `locale` as given for dates and numbers, or English with the English words
 */
export function getTranslations<T>(
  languages: { en: T } & Partial<Record<string, T>>,
  locale: string,
): { translations: T; locale: string } {
  const { language } = new Intl.Locale(locale);
  const translations = Object.hasOwn(languages, language) ? languages[language] : undefined;
  return translations ? { translations, locale } : { translations: languages.en, locale: 'en' };
}
