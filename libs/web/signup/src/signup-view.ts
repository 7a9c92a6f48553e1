import { formatCount, type Localization } from '#translations/translations.js';
import { collectsEmail, collectsPhone } from '#posters/poster.js';
import {
  findDay,
  findLatestBirthday,
  hashTexts,
  TRAP,
  type BoxName,
  type FieldError,
  type SignupErrors,
  type FieldName,
  type Values,
} from './signup-form.js';
import type { SignupPoster } from './signup-poster.js';

type FieldView = {
  name: FieldName;
  label: string;
  value: string;
  type: 'text' | 'email' | 'tel' | 'date';
  autocomplete: string;
  maxlength?: number;
  required: boolean;
  /** The word "optional" after the label. */
  optional: string | false;
  hint?: string;
  max?: string;
  errors: string[];
};

type BoxView = { name: BoxName; label: string; checked: boolean };

/** The data of views/signup.eta. */
export type SignupView = {
  storeName: string;
  title: string;
  intro: string;
  /** The reason why the form was refused. */
  error: string | null;
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

export type FormState = {
  values: Values;
  errors: SignupErrors;
  /** The seconds until the next form is accepted. */
  busySeconds: number | null;
  nonce: string;
  now: Date;
};

type FieldState = Pick<FormState, 'values' | 'errors' | 'now'> & { timeZone: string };

const MAX_LENGTHS = { name: 100, email: 254, phone: 32 };

export function createSignupView(
  { poster, card, store }: SignupPoster,
  { values, errors, busySeconds, nonce, now }: FormState,
  localization: Localization,
): SignupView {
  const t = localization.t.signup;
  const { consentTexts } = store;
  const mode = poster.contactCollectionMode;
  const either =
    collectsEmail(mode) && collectsPhone(mode) && !poster.requireEmail && !poster.requirePhone;
  const box = (name: BoxName, label: string | null): BoxView[] =>
    label === null ? [] : [{ name, label, checked: values[name] !== '' }];
  return {
    storeName: store.name,
    title: poster.title,
    intro: t.intro(card.name),
    error:
      busySeconds !== null
        ? renderBusy(busySeconds, localization)
        : errors.form && t.formErrors[errors.form],
    fields: createFields(poster, { values, errors, now, timeZone: store.timeZone }, localization),
    note: either ? t.eitherContact : null,
    boxes: [
      ...box('marketing_consent', consentTexts.marketing),
      ...box('sms_consent', collectsPhone(mode) ? consentTexts.sms : null),
    ],
    privacy: consentTexts.privacy?.split(/\n+/) ?? [],
    privacyUrl: consentTexts.privacyUrl,
    privacyLabel: t.privacy,
    trap: { name: TRAP, label: t.leaveEmpty },
    nonce,
    texts: hashTexts(consentTexts),
    submit: t.submit,
  };
}

function createAgeHint(
  { minimumAge }: SignupPoster['poster'],
  localization: Localization,
): Pick<FieldView, 'hint'> {
  return minimumAge === null
    ? {}
    : { hint: formatCount(localization.t.signup.minimumAge, minimumAge, localization) };
}

function createFields(
  poster: SignupPoster['poster'],
  { values, errors, now, timeZone }: FieldState,
  localization: Localization,
): FieldView[] {
  const t = localization.t.signup;
  const mode = poster.contactCollectionMode;
  const field = (
    name: FieldName,
    isRequired: boolean,
    rest: Pick<FieldView, 'label' | 'type' | 'autocomplete' | 'maxlength'> & Partial<FieldView>,
  ): FieldView => {
    const error = errors.fields[name];
    return {
      name,
      value: values[name],
      required: isRequired,
      optional: isRequired ? false : t.optional,
      errors: error === undefined ? [] : [renderFieldError(error, poster.minimumAge, localization)],
      ...rest,
    };
  };
  return [
    field('first_name', true, {
      label: t.firstName,
      type: 'text',
      autocomplete: 'given-name',
      maxlength: MAX_LENGTHS.name,
    }),
    field('last_name', false, {
      label: t.lastName,
      type: 'text',
      autocomplete: 'family-name',
      maxlength: MAX_LENGTHS.name,
    }),
    collectsEmail(mode) &&
      field('email', poster.requireEmail, {
        label: t.email,
        type: 'email',
        autocomplete: 'email',
        maxlength: MAX_LENGTHS.email,
      }),
    collectsPhone(mode) &&
      field('phone', poster.requirePhone, {
        label: t.phone,
        type: 'tel',
        autocomplete: 'tel',
        maxlength: MAX_LENGTHS.phone,
      }),
    poster.requireBirthday &&
      field('birthday', true, {
        label: t.birthday,
        type: 'date',
        autocomplete: 'bday',
        max: findLatestBirthday(findDay({ timeZone }, now), 0),
        ...createAgeHint(poster, localization),
      }),
  ].filter((one) => one !== false);
}

function renderFieldError(
  error: FieldError,
  minimumAge: number | null,
  localization: Localization,
): string {
  return error === 'tooYoung'
    ? formatCount(localization.t.signup.minimumAge, minimumAge ?? 0, localization)
    : localization.t.signup.fieldErrors[error];
}

function renderBusy(seconds: number, localization: Localization): string {
  const minutes = Math.ceil(seconds / 60);
  return formatCount(localization.t.signup.tooMany, minutes, localization);
}
