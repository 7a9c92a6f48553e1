import { createHash } from 'node:crypto';
import { getLocalDay, isCalendarDay } from '#platform/kernel/zoned-time.js';
import { normalizeIdentifier, normalizeNumber, normalizeText } from '#platform/kernel/text.js';
import type { CustomerLanguage } from '#translations/translations.js';
import type { ConsentTexts } from '#loyalty/accounts/account.events.js';
import { isDiallable, isEmail, normalizePhone } from '#loyalty/customers/contact.js';
import { collectsEmail, collectsPhone } from '#loyalty/posters/poster.js';
import type { PosterAttributes } from '#loyalty/posters/poster.events.js';

/** The parts of a poster and its store that the form depends on. */
export type FormSpec = {
  poster: Pick<
    PosterAttributes,
    'contactCollectionMode' | 'requireEmail' | 'requirePhone' | 'requireBirthday' | 'minimumAge'
  >;
  store: CustomerLanguage & {
    timeZone: string;
    country: string | null;
    consentTexts: ConsentTexts;
  };
};

const FIELDS = ['first_name', 'last_name', 'email', 'phone', 'birthday'] as const;
/** The numbers that a birthday is entered as. */
export const BIRTHDAY_PARTS = ['birthday_day', 'birthday_month', 'birthday_year'] as const;
const BOXES = ['marketing_consent', 'sms_consent'] as const;
export type FieldName = (typeof FIELDS)[number];
export type BirthdayPart = (typeof BIRTHDAY_PARTS)[number];
export type BoxName = (typeof BOXES)[number];

/** The values as they were typed, to be shown again. */
export type Values = Record<FieldName | BirthdayPart | BoxName, string>;

/** The error of a field; the text follows from the language. */
export type FieldError =
  | 'nameMissing'
  | 'nameUnfit'
  | 'emailMissing'
  | 'emailUnfit'
  | 'phoneMissing'
  | 'phoneUnfit'
  | 'phoneWithoutCountry'
  | 'birthdayMissing'
  | 'birthdayUnfit'
  | 'birthdayFuture'
  | 'tooYoung';

/** The error of the form as a whole. marked: its fields say what is wrong */
export type FormError = 'marked' | 'contactMissing' | 'textsChanged' | 'filledTrap' | 'stale';

export type SignupErrors = { form: FormError | null; fields: { [name in FieldName]?: FieldError } };

/** A valid form. */
export type Signup = {
  /** A random value of the form, so that the same form sent twice counts once. */
  nonce: string;
  firstName: string;
  lastName: string | null;
  email: string | null;
  /** E.164. */
  phone: string | null;
  birthday: string | null;
  /** The texts that were agreed to, word for word. */
  agreed: { marketing: string | null; sms: string | null };
};

/** The name of the field that only programs fill in. */
export const TRAP = 'website';

const MAX_CHARACTERS = 100;
/** No person is older. */
const MAX_AGE_YEARS = 130;
const NONCE = /^[A-Za-z0-9_-]{22}$/;

export const NOTHING_TYPED: Values = {
  first_name: '',
  last_name: '',
  email: '',
  phone: '',
  birthday: '',
  birthday_day: '',
  birthday_month: '',
  birthday_year: '',
  marketing_consent: '',
  sms_consent: '',
};

export function parseSignup(
  form: Readonly<Record<string, string | undefined>>,
  { poster, store }: FormSpec,
  now: Date,
): { values: Values; signup: Signup } | { values: Values; errors: SignupErrors } {
  const values = parseValues(form);
  const { contactCollectionMode: mode } = poster;
  const fields: SignupErrors['fields'] = {};
  const keepValue = <V>(name: FieldName, read: V | { error: FieldError }): V | null => {
    if (typeof read !== 'object' || read === null || !('error' in read)) return read;
    fields[name] = read.error;
    return null;
  };
  const firstName = keepValue('first_name', parseName(values.first_name, true));
  const lastName = keepValue('last_name', parseName(values.last_name, false));
  const email = collectsEmail(mode)
    ? keepValue('email', parseEmail(values.email, poster.requireEmail))
    : null;
  const phone = collectsPhone(mode)
    ? keepValue('phone', parsePhone(values.phone, poster.requirePhone, store.country))
    : null;
  const birthday = poster.requireBirthday
    ? keepValue('birthday', parseBirthday(values, poster.minimumAge, findDay(store, now)))
    : null;
  const { consentTexts } = store;
  const agreed = {
    marketing: values.marketing_consent === '' ? null : consentTexts.marketing,
    sms: values.sms_consent === '' || phone === null ? null : consentTexts.sms,
  };
  const nonce = form['nonce'] ?? '';
  const error = findFormError({ form, values, fields, nonce, email, phone, consentTexts });
  if (error !== null || firstName === null) {
    // A box must be ticked below the text that it agrees to, never beforehand.
    const unticked = error === 'textsChanged' ? { marketing_consent: '', sms_consent: '' } : {};
    return { values: { ...values, ...unticked }, errors: { form: error, fields } };
  }
  const person = { firstName, lastName, email, phone, birthday };
  return { values, signup: { nonce, ...person, agreed } };
}

/** Hashes the texts beside the boxes. The form sends it back, to tell whether they are still those that were shown. */
export function hashTexts({ marketing, sms }: ConsentTexts): string {
  return createHash('sha256')
    .update(JSON.stringify([marketing, sms]))
    .digest('base64url')
    .slice(0, 12);
}

/** Finds the latest birthday that is old enough, as YYYY-MM-DD. People born on 29 February wait until 1 March. */
export function findLatestBirthday(today: string, minimumAge: number): string {
  return `${String(Number(today.slice(0, 4)) - minimumAge).padStart(4, '0')}${today.slice(4)}`;
}

function findDay({ timeZone }: { timeZone: string }, now: Date): string {
  return getLocalDay(timeZone, now.getTime());
}

function parseValues(form: Readonly<Record<string, string | undefined>>): Values {
  const typed = (name: string) => normalizeText(form[name] ?? '').replaceAll(/\s+/gu, ' ');
  return Object.fromEntries(
    [...FIELDS, ...BIRTHDAY_PARTS, ...BOXES].map((name) => [name, typed(name).slice(0, 500)]),
  ) as Values;
}

function findFormError({
  form,
  values,
  fields,
  nonce,
  email,
  phone,
  consentTexts,
}: Pick<SignupErrors, 'fields'> & {
  form: Readonly<Record<string, string | undefined>>;
  values: Values;
  nonce: string;
  email: string | null;
  phone: string | null;
  consentTexts: ConsentTexts;
}): FormError | null {
  if ((form[TRAP] ?? '') !== '') return 'filledTrap';
  const ticked = values.marketing_consent !== '' || values.sms_consent !== '';
  if (ticked && form['texts'] !== hashTexts(consentTexts)) return 'textsChanged';
  if (Object.keys(fields).length > 0) return 'marked';
  if (email === null && phone === null) return 'contactMissing';
  return NONCE.test(nonce) ? null : 'stale';
}

type Parsed<V> = V | null | { error: FieldError };

/** Parses a name. The owner of the address gets it in a message, so it must not contain a message itself. */
function parseName(typed: string, isRequired: boolean): Parsed<string> {
  if (typed === '') return isRequired ? { error: 'nameMissing' } : null;
  const unfit = [...typed].length > MAX_CHARACTERS || /:\/|www\.|[@<>]|\p{Cc}/iu.test(typed);
  return unfit ? { error: 'nameUnfit' } : typed;
}

function parseEmail(typed: string, isRequired: boolean): Parsed<string> {
  if (typed === '') return isRequired ? { error: 'emailMissing' } : null;
  const email = normalizeIdentifier(typed);
  return isEmail(email) ? email : { error: 'emailUnfit' };
}

function parsePhone(typed: string, isRequired: boolean, country: string | null): Parsed<string> {
  if (typed === '') return isRequired ? { error: 'phoneMissing' } : null;
  const phone = normalizePhone(typed, country);
  if (phone !== undefined && isDiallable(phone)) return phone;
  const lacksCountry = country === null && phone !== undefined && !phone.startsWith('+');
  return { error: lacksCountry ? 'phoneWithoutCountry' : 'phoneUnfit' };
}

/** Parses a birthday of three numbers, or one as a whole, which browsers had for a while. */
function parseBirthday(values: Values, minimumAge: number | null, today: string): Parsed<string> {
  const parts = BIRTHDAY_PARTS.map((name) => normalizeNumber(values[name]));
  const typed = parts.some((part) => part !== '')
    ? joinDay(parts)
    : normalizeNumber(values.birthday);
  if (typed === '') return { error: 'birthdayMissing' };
  if (!isCalendarDay(typed) || typed < findLatestBirthday(today, MAX_AGE_YEARS))
    return { error: 'birthdayUnfit' };
  if (typed > today) return { error: 'birthdayFuture' };
  if (minimumAge !== null && typed > findLatestBirthday(today, minimumAge)) {
    return { error: 'tooYoung' };
  }
  return typed;
}

function joinDay([day = '', month = '', year = '']: string[]): string {
  return [year, month.padStart(2, '0'), day.padStart(2, '0')].join('-');
}
