import { requireState, assertNever, defineAggregate } from '#platform/kernel/aggregate.js';
import { pickChanges } from '#platform/kernel/changes.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { normalizeText } from '#platform/kernel/text.js';
import { findConsentTextIssues, NO_CONSENT_TEXTS, tidyConsentTexts } from './consent-texts.js';
import {
  findContactDetailIssues,
  NO_CONTACT_DETAILS,
  pickContactDetails,
  tidyContactDetails,
} from './contact-details.js';
import { findCountryOfLocale, parseCountry } from './country.js';
import { findUnknownCountries, tidySmsCountries } from './sms-countries.js';
import {
  accountEvents,
  type AccountAttributes,
  type AccountEvent,
  type AccountSettings,
  type ContactDetails,
} from './account.events.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** A store: the tenant that owns everything else. */
export type Account = { id: number; accountId: number } & AccountAttributes &
  Pick<
    AccountSettings,
    | 'consentTexts'
    | 'addressForm'
    | 'logoContainsName'
    | 'smsCountries'
    | 'confirmsCounterConsents'
    | keyof ContactDetails
  > & {
    /** SHA-256 of the logo, in hex. */
    logo: string | null;
    createdAt: string;
    updatedAt: string;
  };

/** The name of a store that nobody has named yet. */
export const UNNAMED_STORE = 'My store';

/** Returns what customers read as the name of a store. Of one that nobody has named yet that is the name of their card. */
export function getNameForCustomers(name: string, card: { name: string }): string {
  return name === UNNAMED_STORE ? card.name : name;
}

/**
 * Abbreviations that Intl accepts besides IANA names. They are ambiguous: BST would be Dhaka, not London.
 */
const ABBREVIATIONS = new Set(
  'ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST'.split(
    ' ',
  ),
);

export const account = defineAggregate<Account, AccountEvent>({
  name: 'account',
  table: 'accounts',
  beginsHistory: true,
  events: accountEvents,
  evolve(state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'AccountCreated':
        return {
          ...event.data,
          accountId: event.data.id,
          ...NO_CONTACT_DETAILS,
          consentTexts: NO_CONSENT_TEXTS,
          addressForm: null,
          logoContainsName: false,
          smsCountries: [],
          confirmsCounterConsents: false,
          logo: null,
          createdAt: at,
          updatedAt: at,
        };
      case 'AccountUpdated':
        return { ...requireState(state), ...event.data, updatedAt: at };
      case 'AccountLogoSet':
        return { ...requireState(state), logo: event.data.picture, updatedAt: at };
      case 'AccountLogoRemoved':
        return { ...requireState(state), logo: null, updatedAt: at };
      default:
        return assertNever(event);
    }
  },
});

/** @property country undefined: the one that the locale names, if any */
export type NewAccount = Omit<AccountAttributes, 'country'> & { country?: string | null };

export function createAccount(id: number, attributes: NewAccount): AccountEvent[] {
  const name = normalizeText(attributes.name);
  const timeZone = parseTimeZone(normalizeText(attributes.timeZone));
  const locale = parseLocale(normalizeText(attributes.locale));
  const country = findCountry(attributes, locale);
  const errors: FieldIssues = {};
  if (name === '' || [...name].length > 255) errors['name'] = [ISSUES.name_length({ max: 255 })];
  if (timeZone === undefined) errors['time_zone'] = [ISSUES.unknown_time_zone];
  if (locale === undefined) errors['locale'] = [ISSUES.unknown_language];
  if (country === undefined) errors['country'] = [ISSUES.unknown_country];
  if (timeZone === undefined || locale === undefined || country === undefined || errors['name']) {
    throw new RejectedError(errors);
  }
  const data = { id, ...attributes, name, timeZone, locale, country };
  return [{ type: 'AccountCreated', data }];
}

/** Finds the country of a new store. @returns undefined if it is no country */
function findCountry({ country }: NewAccount, locale = 'en'): string | null | undefined {
  if (country === undefined) return findCountryOfLocale(locale);
  return country === null ? null : parseCountry(normalizeText(country));
}

/** Updates a store. Records only actual changes; without any there is no event. @throws RejectedError */
export function updateAccount(
  state: Account | undefined,
  input: Partial<AccountSettings>,
): AccountEvent[] {
  if (!state) throw new NotFoundError('Store');
  const consentTexts = input.consentTexts && tidyConsentTexts(input.consentTexts);
  const smsCountries = input.smsCountries && tidySmsCountries(input.smsCountries);
  const contactDetails = tidyContactDetails(pickContactDetails(input));
  const errors = {
    ...findContactDetailIssues(contactDetails),
    ...(consentTexts && findConsentTextIssues(consentTexts)),
    ...(smsCountries && findSmsCountryIssues(smsCountries)),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
  const tidy = {
    ...input,
    ...contactDetails,
    ...(consentTexts && { consentTexts }),
    ...(smsCountries && { smsCountries }),
  };
  const data = pickChanges<AccountSettings>(state, tidy);
  return data ? [{ type: 'AccountUpdated', data }] : [];
}

/** @param picture SHA-256 of what was stored */
export function setLogo(state: Account | undefined, picture: string): AccountEvent[] {
  if (!state) throw new NotFoundError('Store');
  return state.logo === picture ? [] : [{ type: 'AccountLogoSet', data: { picture } }];
}

export function removeLogo(state: Account | undefined): AccountEvent[] {
  if (!state) throw new NotFoundError('Store');
  return state.logo === null ? [] : [{ type: 'AccountLogoRemoved', data: {} }];
}

function findSmsCountryIssues(countries: string[]): FieldIssues {
  const unknown = findUnknownCountries(countries);
  if (unknown.length === 0) return {};
  const [first = ''] = unknown;
  return {
    sms_countries: [ISSUES.country_of_list_unknown({ code: JSON.stringify(first.slice(0, 20)) })],
  };
}

/** Parts of aliases that are not just capitalised. Intl spells all other names. */
const SPELLED = new Map(
  'ACT BajaNorte BajaSur CET CHAT ComodRivadavia CST6CDT DeNoronha EasterIsland EET EST EST5EDT GB GMT GMT0 HST IN LHI MET MST MST7MDT NSW NZ PRC PST8PDT ROC ROK SU UCT US UTC W WET'
    .split(' ')
    .map((part) => [part.toLowerCase(), part]),
);

/**
 * Parses an IANA name into its usual spelling; undefined if it is not one. An alias stays one, since it often
 * resolves to the older name: Asia/Kolkata to Asia/Calcutta.
 */
export function parseTimeZone(input: string): string | undefined {
  if (/^[+-]|^SystemV/i.test(input) || ABBREVIATIONS.has(input.toUpperCase())) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: input }).resolvedOptions();
    return timeZone.toLowerCase() === input.toLowerCase() ? timeZone : spellAlias(input);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function spellAlias(alias: string): string {
  return alias
    .toLowerCase()
    .replaceAll(
      /[^/_+-]+/g,
      (part) => SPELLED.get(part) ?? `${part.slice(0, 1).toUpperCase()}${part.slice(1)}`,
    );
}

/** Parses a BCP 47 tag into its canonical form; undefined if it is not one. */
export function parseLocale(input: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(input)[0];
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
