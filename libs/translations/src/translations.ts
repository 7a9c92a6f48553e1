import { deFormal } from './address-forms/de-formal.js';
import { esInformal } from './address-forms/es-informal.js';
import { frInformal } from './address-forms/fr-informal.js';
import { changeTexts, type AddressForm } from './customer-texts.js';
import { de } from './de.js';
import { en, type Translations } from './en.js';
import { es } from './es.js';
import { fr } from './fr.js';

const LANGUAGES = new Map<string, Translations>(Object.entries({ en, de, fr, es }));

/** Lists the ISO 639 codes, English first, because a negotiation without a match takes the first. */
export const LANGUAGE_CODES = [...LANGUAGES.keys()];

/** The texts in the address form that a language does not usually have. English has only one. */
const UNUSUAL_FORMS = new Map<string, { form: AddressForm; t: Translations }>([
  ['de', { form: 'formal', t: changeTexts(de, deFormal) }],
  ['es', { form: 'informal', t: changeTexts(es, esInformal) }],
  ['fr', { form: 'informal', t: changeTexts(fr, frInformal) }],
]);

/** The texts in one language. @property locale for dates and numbers in them */
export type Localization = { t: Translations; locale: string };

/**
 * Returns the texts in a locale's language, or in English if there are none.
 * @param locale a BCP 47 tag
 * @returns `locale` unchanged for dates and numbers, or `en` with the English texts
 */
export function getTranslations(locale: string): Localization {
  const t = LANGUAGES.get(new Intl.Locale(locale).language);
  return t ? { t, locale } : { t: en, locale: 'en' };
}

/** How a store speaks to its customers. @property addressForm null: as is usual in the language */
export type CustomerLanguage = { locale: string; addressForm: AddressForm | null };

/** Does the same for texts that customers of a store read: these are in its address form (ADR-0127). */
export function getCustomerTranslations({ locale, addressForm }: CustomerLanguage): Localization {
  const unusual = UNUSUAL_FORMS.get(new Intl.Locale(locale).language);
  return unusual !== undefined && unusual.form === addressForm
    ? { t: unusual.t, locale }
    : getTranslations(locale);
}

/** Returns the locale for dates of a page: 3 Mar 2027 is understood wherever English is read, and 3/3/2027 is not. */
export function toDateLocale(locale: string): string {
  return locale === 'en' ? 'en-GB' : locale;
}

/** Renders a text that contains a count. */
export function formatCount(
  text: (formatted: string, count: number) => string,
  count: number,
  { locale }: Localization,
): string {
  return text(new Intl.NumberFormat(locale).format(count), count);
}
