import { changeTexts, createTexts, readCatalogues } from './catalogues.js';
import type { AddressForm } from './address-form.js';
import type { MessageArguments } from './message-arguments.js';
import type en from './en.json';

type Texts<Section, Path extends string> = {
  readonly [Name in keyof Section]: Section[Name] extends string
    ? Text<`${Path}${Name & string}`>
    : Texts<Section[Name], `${Path}${Name & string}.`>;
};
type Text<Name extends string> = Name extends keyof MessageArguments
  ? (values: MessageArguments[Name]) => string
  : string;

/** The texts that people read, by subject. `en.json` defines which texts every language has, and their arguments. */
export type Translations = Texts<typeof en, ''>;

/** The texts in one language. @property locale for dates and numbers beside them */
export type Localization = { t: Translations; locale: string };

const FILES = readCatalogues();
/** The texts by language, as in `de`, and by language and address form, as in `de@formal`. */
const CATALOGUES = new Map(
  [...FILES].map(([name, catalogue]) => {
    const [language = '', form] = name.split('@');
    return [name, form ? changeTexts(FILES.get(language) ?? {}, catalogue) : catalogue];
  }),
);

/** Lists the ISO 639 codes, English first, because a negotiation without a match takes the first. */
export const LANGUAGE_CODES = [
  'en',
  ...[...CATALOGUES.keys()].filter((name) => name !== 'en' && !name.includes('@')).toSorted(),
];

/** Anybody may have a store with a locale that nobody else has. */
const MAX_LOCALIZATIONS = 100;
const localizations = new Map<string, Localization>();

/**
 * Returns the texts in a locale's language, or in English if there are none.
 * @param locale a BCP 47 tag
 * @returns `locale` unchanged for dates and numbers, or `en` with the English texts
 */
export function getTranslations(locale: string): Localization {
  const { language } = new Intl.Locale(locale);
  return CATALOGUES.has(language) ? localize(language, locale) : localize('en', 'en');
}

/** How a store speaks to its customers. @property addressForm null: as is usual in the language */
export type CustomerLanguage = { locale: string; addressForm: AddressForm | null };

/** Does the same for texts that customers of a store read: these are in its address form. */
export function getCustomerTranslations({ locale, addressForm }: CustomerLanguage): Localization {
  const name = `${new Intl.Locale(locale).language}@${addressForm}`;
  return CATALOGUES.has(name) ? localize(name, locale) : getTranslations(locale);
}

/** Returns the locale for dates of a page: 3 Mar 2027 is understood wherever English is read, and 3/3/2027 is not. */
export function toDateLocale(locale: string): string {
  return locale === 'en' ? 'en-GB' : locale;
}

function localize(name: string, locale: string): Localization {
  const key = `${name} ${locale}`;
  let localization = localizations.get(key);
  if (!localization) {
    if (localizations.size >= MAX_LOCALIZATIONS) localizations.clear();
    localization = { t: createTexts(CATALOGUES.get(name) ?? {}, locale) as Translations, locale };
    localizations.set(key, localization);
  }
  return localization;
}
