import type { Form } from '#http/body-kinds.js';

/** The fields of the form about a customer, as they were entered. */
export type CustomerFields = {
  first_name: string;
  last_name: string;
  email: string;
  phone: string;
  birth_day: string;
  birth_month: string;
  birth_year: string;
  marketing_consent: boolean;
  sms_consent: boolean;
};

type Person = {
  first_name: string;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  birthday: string | null;
  marketing_consent: boolean;
  sms_consent: boolean;
};

export const NO_FIELDS: CustomerFields = {
  first_name: '',
  last_name: '',
  email: '',
  phone: '',
  birth_day: '',
  birth_month: '',
  birth_year: '',
  marketing_consent: false,
  sms_consent: false,
};

export function readCustomerFields(form: Form): CustomerFields {
  const text = (name: string) => (form[name] ?? '').trim();
  return {
    first_name: text('first_name'),
    last_name: text('last_name'),
    email: text('email'),
    phone: text('phone'),
    birth_day: text('birth_day'),
    birth_month: text('birth_month'),
    birth_year: text('birth_year'),
    marketing_consent: form['marketing_consent'] === 'yes',
    sms_consent: form['sms_consent'] === 'yes',
  };
}

export function toCustomerFields(person: Person): CustomerFields {
  const [year = '', month = '', day = ''] = (person.birthday ?? '').split('-');
  return {
    first_name: person.first_name,
    last_name: person.last_name ?? '',
    email: person.email ?? '',
    phone: person.phone ?? '',
    birth_day: day.replace(/^0/, ''),
    birth_month: month.replace(/^0/, ''),
    birth_year: year,
    marketing_consent: person.marketing_consent,
    sms_consent: person.sms_consent,
  };
}

/** Renders the fields as the body of a request to the API: blank ones are null. */
export function toCustomerBody(fields: CustomerFields): Record<string, unknown> {
  const orNull = (text: string) => (text === '' ? null : text);
  return {
    first_name: fields.first_name,
    last_name: orNull(fields.last_name),
    email: orNull(fields.email),
    phone: orNull(fields.phone),
    birthday: renderBirthday(fields),
    marketing_consent: fields.marketing_consent,
    sms_consent: fields.sms_consent,
  };
}

/** Returns the fields that differ: a value that somebody else changed meanwhile stays as it is. */
export function findChangedFields(
  before: CustomerFields,
  after: CustomerFields,
): Record<string, unknown> {
  const [former, present] = [toCustomerBody(before), toCustomerBody(after)];
  return Object.fromEntries(
    Object.entries(present).filter(([name, value]) => value !== former[name]),
  );
}

/** Renders a birthday as YYYY-MM-DD, null without one. What is no date stays one for the check to refuse. */
function renderBirthday({ birth_day, birth_month, birth_year }: CustomerFields): string | null {
  if (birth_day === '' && birth_month === '' && birth_year === '') return null;
  return `${birth_year}-${birth_month.padStart(2, '0')}-${birth_day.padStart(2, '0')}`;
}
