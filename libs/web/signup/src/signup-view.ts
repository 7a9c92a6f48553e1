import { collectsEmail, collectsPhone } from '#posters/poster.js';
import {
  dayOf,
  latestBirthday,
  textsMark,
  TRAP,
  type BoxName,
  type Fault,
  type Faults,
  type FieldName,
  type Values,
} from './signup-form.js';
import type { SignupPoster } from './signup-poster.js';
import type { Told } from './words.js';

type FieldView = {
  name: FieldName;
  label: string;
  value: string;
  type: 'text' | 'email' | 'tel' | 'date';
  autocomplete: string;
  maxlength?: number;
  required: boolean;
  /** The word behind the label. */
  optional: string | false;
  hint?: string;
  max?: string;
  errors: string[];
};

type BoxView = { name: BoxName; label: string; checked: boolean };

/** What views/signup.eta shows. */
export type SignupView = {
  storeName: string;
  title: string;
  intro: string;
  /** Why the form was not taken. */
  fault: string | null;
  fields: FieldView[];
  note: string | null;
  boxes: BoxView[];
  privacy: string[];
  privacyUrl: string | null;
  privacyLabel: string;
  trap: { name: string; label: string };
  nonce: string;
  texts: string;
  submit: string;
};

export type Shown = {
  values: Values;
  faults: Faults;
  /** Until the next form is taken. */
  busySeconds: number | null;
  nonce: string;
  now: Date;
};

const LONGEST = { name: 100, email: 254, phone: 32 };

export function signupView(
  { poster, card, store }: SignupPoster,
  { values, faults, busySeconds, nonce, now }: Shown,
  told: Told,
): SignupView {
  const { words } = told;
  const { consentTexts } = store;
  const mode = poster.contactCollectionMode;
  const either =
    collectsEmail(mode) && collectsPhone(mode) && !poster.requireEmail && !poster.requirePhone;
  const box = (name: BoxName, label: string | null): BoxView[] =>
    label === null ? [] : [{ name, label, checked: values[name] !== '' }];
  return {
    storeName: store.name,
    title: poster.title,
    intro: words.intro(card.name),
    fault:
      busySeconds !== null
        ? busyText(busySeconds, told)
        : faults.form && words.formFaults[faults.form],
    fields: fieldsOf(poster, { values, faults, now, timeZone: store.timeZone }, told),
    note: either ? words.eitherContact : null,
    boxes: [
      ...box('marketing_consent', consentTexts.marketing),
      ...box('sms_consent', collectsPhone(mode) ? consentTexts.sms : null),
    ],
    privacy: consentTexts.privacy?.split(/\n+/) ?? [],
    privacyUrl: consentTexts.privacyUrl,
    privacyLabel: words.privacy,
    trap: { name: TRAP, label: words.leaveEmpty },
    nonce,
    texts: textsMark(consentTexts),
    submit: words.submit,
  };
}

function ageHint({ minimumAge }: SignupPoster['poster'], told: Told): Pick<FieldView, 'hint'> {
  return minimumAge === null ? {} : { hint: told.words.minimumAge(numberIn(minimumAge, told)) };
}

function fieldsOf(
  poster: SignupPoster['poster'],
  { values, faults, now, timeZone }: Omit<Shown, 'busySeconds' | 'nonce'> & { timeZone: string },
  told: Told,
): FieldView[] {
  const { words } = told;
  const mode = poster.contactCollectionMode;
  const field = (
    name: FieldName,
    isRequired: boolean,
    rest: Pick<FieldView, 'label' | 'type' | 'autocomplete' | 'maxlength'> & Partial<FieldView>,
  ): FieldView => {
    const fault = faults.fields[name];
    return {
      name,
      value: values[name],
      required: isRequired,
      optional: isRequired ? false : words.optional,
      errors: fault === undefined ? [] : [faultText(fault, poster.minimumAge, told)],
      ...rest,
    };
  };
  return [
    field('first_name', true, {
      label: words.firstName,
      type: 'text',
      autocomplete: 'given-name',
      maxlength: LONGEST.name,
    }),
    field('last_name', false, {
      label: words.lastName,
      type: 'text',
      autocomplete: 'family-name',
      maxlength: LONGEST.name,
    }),
    collectsEmail(mode) &&
      field('email', poster.requireEmail, {
        label: words.email,
        type: 'email',
        autocomplete: 'email',
        maxlength: LONGEST.email,
      }),
    collectsPhone(mode) &&
      field('phone', poster.requirePhone, {
        label: words.phone,
        type: 'tel',
        autocomplete: 'tel',
        maxlength: LONGEST.phone,
      }),
    poster.requireBirthday &&
      field('birthday', true, {
        label: words.birthday,
        type: 'date',
        autocomplete: 'bday',
        max: latestBirthday(dayOf({ timeZone }, now), 0),
        ...ageHint(poster, told),
      }),
  ].filter((one) => one !== false);
}

function faultText(fault: Fault, minimumAge: number | null, told: Told): string {
  return fault === 'tooYoung'
    ? told.words.tooYoung(numberIn(minimumAge ?? 0, told))
    : told.words.faults[fault];
}

function busyText(seconds: number, told: Told): string {
  const minutes = Math.ceil(seconds / 60);
  return told.words.tooMany(numberIn(minutes, told), minutes);
}

function numberIn(count: number, { locale }: Told): string {
  return new Intl.NumberFormat(locale).format(count);
}
