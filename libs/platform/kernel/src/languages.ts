/**
 * The words of a locale's language, or English where there are none in it.
 * @param languages by ISO 639 code
 * @param locale a BCP 47 tag
 * @returns `locale` as given for dates and numbers, or English with the English words
 */
export function wordsIn<W>(
  languages: { en: W } & Partial<Record<string, W>>,
  locale: string,
): { words: W; locale: string } {
  const { language } = new Intl.Locale(locale);
  const words = Object.hasOwn(languages, language) ? languages[language] : undefined;
  return words ? { words, locale } : { words: languages.en, locale: 'en' };
}
