import type { FieldError, FormError } from './signup-form.js';

/** The texts of the signup form. Numbers come as text in the format of the language. */
export type Translations = {
  intro: (card: string) => string;
  firstName: string;
  lastName: string;
  email: string;
  phone: string;
  birthday: string;
  optional: string;
  /** The hint when either contact is enough. */
  eitherContact: string;
  minimumAge: (years: string) => string;
  privacy: string;
  submit: string;
  /** The label of the hidden trap field. */
  leaveEmpty: string;
  faults: Record<Exclude<FieldError, 'tooYoung'>, string>;
  tooYoung: (years: string) => string;
  formFaults: Record<FormError, string>;
  tooMany: (minutes: string, count: number) => string;
  elsewhere: string;
  elsewhereWhy: string;
  gone: string;
  goneWhy: string;
  closed: string;
  closedWhy: string;
};

export const en: Translations = {
  intro: (card) => `Get “${card}” on your phone. No app needed.`,
  firstName: 'First name',
  lastName: 'Last name',
  email: 'E-mail',
  phone: 'Phone',
  birthday: 'Birthday',
  optional: 'optional',
  eitherContact: 'An e-mail address or a phone number is enough.',
  minimumAge: (years) => `The card is for people of ${years} and over.`,
  privacy: 'Privacy policy',
  submit: 'Get the card',
  leaveEmpty: 'Leave this field empty',
  faults: {
    nameMissing: 'Please enter your first name.',
    nameUnfit: 'Please enter a name without links or addresses.',
    emailMissing: 'Please enter your e-mail address.',
    emailUnfit: 'Please enter a whole address, such as anna@example.com.',
    phoneMissing: 'Please enter your phone number.',
    phoneUnfit: 'This number cannot be right. Please check its digits.',
    phoneWithoutCountry: 'Please begin with the country code, such as +44.',
    birthdayMissing: 'Please enter your birthday.',
    birthdayUnfit: 'Please enter your birthday like this: 1990-05-31.',
  },
  tooYoung: (years) => `The card is for people of ${years} and over.`,
  formFaults: {
    marked: 'Almost there. Please look at the marked fields.',
    contactMissing: 'Please enter an e-mail address or a phone number.',
    textsChanged: 'The texts beside the boxes have just changed. Please read them again.',
    filledTrap: 'Please send the form again, with the field at its end left empty.',
    stale: 'The page was too old. Please send the form once more.',
  },
  tooMany: (minutes, count) =>
    `Many people are signing up here right now. Please try again in ${minutes} ${count === 1 ? 'minute' : 'minutes'}.`,
  elsewhere: 'This form came from another site',
  elsewhereWhy: 'For your safety it was not taken. Please scan the code on the poster again.',
  gone: 'This poster is no longer in use',
  goneWhy: 'The link may also be incomplete. Please ask at the shop for a new one.',
  closed: 'This card is not given out at the moment',
  closedWhy: 'Please ask at the shop. Cards that were given out stay as they are.',
};
