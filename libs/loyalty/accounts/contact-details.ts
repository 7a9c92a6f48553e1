import { parseAbsoluteUrl } from '#platform/kernel/absolute-url.js';
import { isEmailAddress, normalizeEmailAddress } from '#platform/kernel/email-address.js';
import { normalizeText } from '#platform/kernel/text.js';
import { readPhoneText } from '#loyalty/customers/contact.js';
import type { ContactDetails } from './account.events.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues, Issue } from '#platform/kernel/issues.js';

export const NO_CONTACT_DETAILS: ContactDetails = {
  website: null,
  phone: null,
  email: null,
  address: null,
  termsText: null,
};

/** The most characters of each: wallets show them on the back of a pass, which is fetched with every stamp. */
export const MAX_CONTACT_LENGTHS = {
  website: 2_048,
  phone: 40,
  email: 254,
  address: 500,
  termsText: 4_000,
} as const;

/** The names under which errors are reported. */
const FIELDS: Record<keyof ContactDetails, string> = {
  website: 'website',
  phone: 'phone',
  email: 'email',
  address: 'address',
  termsText: 'terms_text',
};
const NAMES = Object.keys(FIELDS) as (keyof ContactDetails)[];

/** Matches a web address without its scheme, as people write it on a card: `cafe.example/menu`. */
const BARE_HOST = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+(?:[/?]|$)/u;

/** Picks the contact details among settings, without those that are missing. */
export function pickContactDetails(settings: Partial<ContactDetails>): Partial<ContactDetails> {
  return Object.fromEntries(
    NAMES.flatMap((name) => (settings[name] === undefined ? [] : [[name, settings[name]]])),
  );
}

/** Returns the contact details of a store. */
export function toContactDetails({
  website,
  phone,
  email,
  address,
  termsText,
}: ContactDetails): ContactDetails {
  return { website, phone, email, address, termsText };
}

/** Normalizes contact details; a blank field becomes null. What is invalid is kept unchanged. */
export function tidyContactDetails(details: Partial<ContactDetails>): Partial<ContactDetails> {
  const tidy = Object.entries(details).map(([name, value]) => {
    const text = normalizeText((value ?? '').replaceAll('\r\n', '\n'));
    if (text === '') return [name, null];
    if (name === 'website') return [name, tidyWebsite(text)];
    return [name, name === 'email' ? normalizeEmailAddress(text) : text];
  });
  return Object.fromEntries(tidy) as Partial<ContactDetails>;
}

/** Finds the errors of normalized contact details, by field. */
export function findContactDetailIssues(details: Partial<ContactDetails>): FieldIssues {
  const errors: FieldIssues = {};
  for (const name of NAMES) {
    const value = details[name];
    const error = value === undefined || value === null ? undefined : findIssue(name, value);
    if (error !== undefined) errors[FIELDS[name]] = [error];
  }
  return errors;
}

/** Returns the address of `tel:` for a stored phone number. */
export function toPhoneLink(phone: string): string {
  return `tel:${phone.replaceAll(/[^\d+]/g, '')}`;
}

function tidyWebsite(text: string): string {
  const url = parseAbsoluteUrl(BARE_HOST.test(text) ? `https://${text}` : text);
  return url?.href ?? text;
}

function findIssue(name: keyof ContactDetails, value: string): Issue | undefined {
  const max = MAX_CONTACT_LENGTHS[name];
  if (value.length > max && [...value].length > max) return ISSUES.too_long({ max });
  if (value.includes('\0')) return ISSUES.nul_character;
  switch (name) {
    case 'website':
      return isWebsite(value) ? undefined : ISSUES.website_invalid;
    case 'phone':
      return isPhone(value) ? undefined : ISSUES.contact_phone_invalid;
    case 'email':
      return isEmailAddress(value) ? undefined : ISSUES.contact_email_invalid;
    default:
      return undefined;
  }
}

/** Tells whether customers can follow it. Passes hold it for years, so it has no password. */
function isWebsite(text: string): boolean {
  const url = parseAbsoluteUrl(text);
  return (
    (url?.protocol === 'https:' || url?.protocol === 'http:') &&
    url.username === '' &&
    url.password === ''
  );
}

/** Tells whether it can be dialled: some shops have numbers of three digits. */
function isPhone(text: string): boolean {
  const digits = readPhoneText(text)?.replaceAll(/\D/g, '') ?? '';
  return digits.length >= 3 && digits.length <= 20;
}
