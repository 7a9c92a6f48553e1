import type { Localization } from '#translations/translations.js';
import { collectsEmail, collectsPhone } from '#loyalty/posters/poster.js';
import {
  hashTexts,
  BIRTHDAY_PARTS,
  TRAP,
  type BirthdayPart,
  type BoxName,
  type FieldError,
  type SignupErrors,
  type FieldName,
  type Values,
} from './signup-form.js';
import type { SignupPoster } from './signup-poster.js';

type BirthdayInput = {
  name: BirthdayPart;
  label: string;
  value: string;
  autocomplete: string;
  maxlength: number;
};

type FieldView = {
  name: FieldName;
  label: string;
  value: string;
  type: 'text' | 'email' | 'tel' | 'birthday';
  autocomplete: string;
  maxlength?: number;
  required: boolean;
  /** The word "optional" after the label. */
  optional: string | false;
  hint?: string;
  errors: string[];
  /** The inputs of a birthday, in the order of the language. */
  parts?: BirthdayInput[];
};

type BoxView = { name: BoxName; label: string; checked: boolean };

/** What somebody who signs up gets, and what there is to win. */
type CardPreview = {
  label: string;
  strip: { '1x': string; '2x': string };
  summary: string;
  welcome: string | null;
  offers: { name: string; price: string }[];
};

/** The pictures of the page, as paths. */
export type SignupPictures = Pick<SignupView, 'logo'> & Pick<CardPreview, 'strip'>;

/** The data of views/signup.eta. */
export type SignupView = {
  storeName: string;
  /** Whether the name of the store stands in the logo. */
  isNameInLogo: boolean;
  /** The logo in two resolutions; null without one. */
  logo: { '1x': string; '2x': string } | null;
  card: CardPreview;
  title: string;
  intro: string;
  /** The reason why the form was refused. */
  error: string | null;
  /** Inputs in rows of one or two. */
  fields: FieldView[][];
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
};

type FieldState = Pick<FormState, 'values' | 'errors'>;

/** More would be a list to read, not a reason to sign up. */
const MAX_OFFERS = 3;
const MAX_LENGTHS = { name: 100, email: 254, phone: 32 };

export function createSignupView(
  signupPoster: SignupPoster,
  { values, errors, busySeconds, nonce }: FormState,
  { logo, strip }: SignupPictures,
  localization: Localization,
): SignupView {
  const t = localization.t.signup;
  const { poster, card, store } = signupPoster;
  const { consentTexts } = store;
  const mode = poster.contactCollectionMode;
  const either =
    collectsEmail(mode) && collectsPhone(mode) && !poster.requireEmail && !poster.requirePhone;
  const box = (name: BoxName, label: string | null): BoxView[] =>
    label === null ? [] : [{ name, label, checked: values[name] !== '' }];
  return {
    storeName: store.name,
    isNameInLogo: logo !== null && store.logoContainsName,
    logo,
    card: createPreview(signupPoster, strip, localization),
    title: poster.title,
    intro: /^the\b/i.test(card.name)
      ? t.introWithArticle({ card: card.name })
      : t.intro({ card: card.name }),
    error:
      busySeconds !== null
        ? renderBusy(busySeconds, localization)
        : errors.form === null || errors.form === 'marked'
          ? null
          : t.formErrors[errors.form],
    fields: createFields(poster, { values, errors }, localization),
    note: either ? t.eitherContact : null,
    boxes: [
      ...box('marketing_consent', consentTexts.marketing),
      ...box('sms_consent', collectsPhone(mode) ? consentTexts.sms : null),
    ],
    privacy: consentTexts.privacy?.split(/\n+/) ?? [t.privacyNone({ store: store.name })],
    privacyUrl: consentTexts.privacyUrl,
    privacyLabel: t.privacy,
    trap: { name: TRAP, label: t.leaveEmpty },
    nonce,
    texts: hashTexts(consentTexts),
    submit: t.submit,
  };
}

function createPreview(
  { card, offers }: SignupPoster,
  strip: CardPreview['strip'],
  localization: Localization,
): CardPreview {
  const { t } = localization;
  return {
    label: t.signup.preview({ card: card.name }),
    strip,
    summary: t.card.stampsOf({ have: card.initialStamps, need: card.stampsRequired }),
    welcome: card.initialStamps === 0 ? null : t.signup.welcome({ count: card.initialStamps }),
    offers: offers.slice(0, MAX_OFFERS).map(({ name, stampsRequired }) => ({
      name,
      price: t.signup.offer({ count: stampsRequired }),
    })),
  };
}

/** Lists the inputs of a birthday, in the order in which the language writes a date. */
function listBirthdayParts(values: Values, { t, locale }: Localization): BirthdayInput[] {
  const order = new Intl.DateTimeFormat(locale, { calendar: 'gregory' })
    .formatToParts(0)
    .map(({ type }) => `birthday_${type}`);
  const { day, month, year } = t.signup;
  const labels = { birthday_day: day, birthday_month: month, birthday_year: year };
  return BIRTHDAY_PARTS.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)).map((name) => ({
    name,
    label: labels[name],
    value: values[name],
    autocomplete: name.replace('birthday_', 'bday-'),
    maxlength: name === 'birthday_year' ? 4 : 2,
  }));
}

function createAgeHint(
  { minimumAge }: SignupPoster['poster'],
  localization: Localization,
): Pick<FieldView, 'hint'> {
  return minimumAge === null
    ? {}
    : { hint: localization.t.signup.minimumAge({ years: minimumAge }) };
}

function createFields(
  poster: SignupPoster['poster'],
  { values, errors }: FieldState,
  localization: Localization,
): FieldView[][] {
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
  const name = { type: 'text', maxlength: MAX_LENGTHS.name } as const;
  const contact = [
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
        type: 'birthday',
        autocomplete: 'bday',
        parts: listBirthdayParts(values, localization),
        ...createAgeHint(poster, localization),
      }),
  ].filter((item) => item !== false);
  return [
    [
      field('first_name', true, { ...name, label: t.firstName, autocomplete: 'given-name' }),
      field('last_name', false, { ...name, label: t.lastName, autocomplete: 'family-name' }),
    ],
    ...contact.map((item) => [item]),
  ];
}

function renderFieldError(
  error: FieldError,
  minimumAge: number | null,
  localization: Localization,
): string {
  return error === 'tooYoung'
    ? localization.t.signup.minimumAge({ years: minimumAge ?? 0 })
    : localization.t.signup.fieldErrors[error];
}

function renderBusy(seconds: number, localization: Localization): string {
  const minutes = Math.ceil(seconds / 60);
  return localization.t.signup.tooMany({ count: minutes });
}
