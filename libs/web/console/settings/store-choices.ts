import { listCountries } from '#loyalty/accounts/country.js';
import { LANGUAGE_CODES, type Localization } from '#translations/translations.js';

/** Lists the forms of address, with the words of the languages that have them. */
export function listAddressForms({ t: { console: texts } }: Localization): Option[] {
  const { usual, informal, formal } = texts.settings.addressForms;
  return [
    { value: '', text: usual },
    { value: 'informal', text: informal },
    { value: 'formal', text: formal },
  ];
}

/** Explains to which countries a store sends SMS. */
export function describeSmsCountries(
  country: string | null,
  { t: { console: texts }, locale }: Localization,
): string {
  const { smsHome, smsNoHome } = texts.settings;
  if (country === null) return smsNoHome;
  return smsHome({
    country: new Intl.DisplayNames(locale, { type: 'region' }).of(country) ?? country,
  });
}

/** An option of a select, or several of them below a heading. */
export type Option = { value: string; text: string };
export type OptionGroup = { group: string; options: Option[] };

/** Lists the languages to choose from, including the current one. @param locale of the page */
export function listLanguages(current: string, locale: string): Option[] {
  const codes = current === '' ? LANGUAGE_CODES : [...new Set([...LANGUAGE_CODES, current])];
  return codes.map((value) => ({ value, text: getLanguageName(value, locale) }));
}

function getLanguageName(language: string, locale: string): string {
  try {
    return new Intl.DisplayNames(locale, { type: 'language' }).of(language) ?? language;
  } catch (error) {
    // Intl has no name for languages with extensions, such as de-u-co-phonebk, or for invalid tags.
    if (error instanceof RangeError) return language;
    throw error;
  }
}

/** The continents of time zones by their codes of UN M49, for which Intl has names in every language. */
const CONTINENTS = new Map([
  ['Europe', '150'],
  ['America', '019'],
  ['Africa', '002'],
  ['Asia', '142'],
  ['Australia', '009'],
  ['Pacific', '009'],
]);

/**
 * Lists the time zones by continent, including the current one. Leaves out those of counties, such as
 * America/Indiana/Knox, which today have the time of a large city.
 * @param otherText the heading of those on no continent
 */
export function listTimeZones(current: string, otherText: string, locale: string): OptionGroup[] {
  const names = new Intl.DisplayNames(locale, { type: 'region' });
  const groups = new Map<string, Option[]>();
  for (const code of CONTINENTS.values()) groups.set(names.of(code) ?? code, []);
  groups.set(otherText, [{ value: 'UTC', text: 'UTC' }]);
  const zones = Intl.supportedValuesOf('timeZone').filter((zone) => zone.split('/').length < 3);
  for (const value of new Set(['America/Argentina/Buenos_Aires', ...zones, current])) {
    if (value === '' || value === 'UTC') continue;
    const [continent = '', ...city] = value.split('/');
    const code = CONTINENTS.get(continent);
    const group = groups.get(code === undefined ? otherText : (names.of(code) ?? code));
    const text = code === undefined || city.length === 0 ? value : city.join(', ');
    group?.push({ value, text: text.replaceAll('_', ' ') });
  }
  return [...groups].map(([group, options]) => ({
    group,
    options: options.sort((a, b) => a.text.localeCompare(b.text, locale)),
  }));
}

/** Lists the countries to choose from, or none. */
export function listCountryChoices(noneText: string, locale: string): Option[] {
  const countries = listCountries(locale).map(({ code, name }) => ({ value: code, text: name }));
  return [{ value: '', text: noneText }, ...countries];
}
