import type { Form } from '#platform/http/body-kinds.js';
import { CreateCustomerDto } from '#loyalty/customers/customer-input.dto.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';

export const customerForm = defineForm(CreateCustomerDto, [
  'first_name',
  'last_name',
  'email',
  'phone',
  'marketing_consent',
  'sms_consent',
]);

/** The entered values, with a birthday in three parts. */
export type CustomerFields = ValuesOf<typeof customerForm> &
  Record<'birth_day' | 'birth_month' | 'birth_year', string>;

export const NO_FIELDS = toCustomerFields({ birthday: null });

export function readCustomerFields(form: Form): CustomerFields {
  const text = (name: string) => (form[name] ?? '').trim();
  return {
    ...customerForm.read(form),
    birth_day: text('birth_day'),
    birth_month: text('birth_month'),
    birth_year: text('birth_year'),
  };
}

export function toCustomerFields(
  person: { birthday: string | null } & Parameters<typeof customerForm.toValues>[0],
): CustomerFields {
  const [year = '', month = '', day = ''] = (person.birthday ?? '').split('-');
  return {
    ...customerForm.toValues(person),
    birth_day: day.replace(/^0/, ''),
    birth_month: month.replace(/^0/, ''),
    birth_year: year,
  };
}

/** Renders the fields as the body of a request to the API: blank ones are null. */
export function toCustomerBody(fields: CustomerFields): Record<string, unknown> {
  const { birth_day: _day, birth_month: _month, birth_year: _year, ...others } = fields;
  const entries = Object.entries(others).map(([name, value]) => [
    name,
    value === '' ? null : value,
  ]);
  return { ...Object.fromEntries(entries), birthday: renderBirthday(fields) };
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
