import {
  findCanonicalTimeZone,
  findCountryOfTimeZone,
  listCountries,
} from '#loyalty/accounts/country.js';
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

/**
 * Lists the languages to choose from. The current one replaces that without a country, as it has the same texts.
 * @param locale of the page
 */
export function listLanguages(current: string, locale: string): Option[] {
  const [language = ''] = current.split('-');
  const others = LANGUAGE_CODES.map((code) => (code === language ? current : code));
  const codes = current === '' ? others : new Set([...others, current]);
  return [...codes].map((value) => ({ value, text: getLanguageName(value, locale) }));
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

/** Cities whose time zones ICU still calls by a former name. */
const RENAMED = new Map([
  ['Kiev', 'Kyiv'],
  ['Godthab', 'Nuuk'],
  ['Coral Harbour', 'Atikokan'],
  ['Enderbury', 'Kanton'],
  ['Ponape', 'Pohnpei'],
  ['Truk', 'Chuuk'],
]);

/**
 * Lists the time zones by continent and country, including the current one. Leaves out those of counties, such as
 * America/Indiana/Knox, which today have the time of a large city. The city is named only in countries with several,
 * since Intl knows cities by no name but that of the zone.
 * @param otherText the heading of those on no continent
 */
export function listTimeZones(current: string, otherText: string, locale: string): OptionGroup[] {
  const names = new Intl.DisplayNames(locale, { type: 'region' });
  const groups = new Map<string, Option[]>();
  for (const code of CONTINENTS.values()) groups.set(names.of(code) ?? code, []);
  groups.set(otherText, [{ value: 'UTC', text: 'UTC' }]);
  // By the name that is stored, which may be an alias.
  const canonicalName = findCanonicalTimeZone(current);
  const zones = Intl.supportedValuesOf('timeZone').filter(
    (zone) => zone.split('/').length < 3 && zone !== canonicalName && zone !== 'Europe/Busingen',
  );
  const places = [...new Set([...zones, current])]
    .filter((value) => value !== '' && value !== 'UTC')
    .map((value) => ({ value, country: findCountryOfTimeZone(value) }));
  for (const { value, country } of places) {
    const [continent = '', ...rest] = value.split('/');
    const code = CONTINENTS.get(continent);
    const group = groups.get(code === undefined ? otherText : (names.of(code) ?? code));
    const city = (rest.at(-1) ?? value).replaceAll('_', ' ');
    const name = RENAMED.get(city) ?? city;
    const isOnly = places.filter((other) => other.country === country).length === 1;
    const countryName = country === null ? undefined : names.of(country);
    const place = countryName ? `${countryName}, ${name}` : value.replaceAll('_', ' ');
    const text = countryName && isOnly ? countryName : place;
    group?.push({ value, text });
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
