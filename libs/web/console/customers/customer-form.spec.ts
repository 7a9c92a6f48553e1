import { describe, expect, it } from '@jest/globals';
import {
  findChangedFields,
  NO_FIELDS,
  readCustomerFields,
  toCustomerBody,
  toCustomerFields,
} from './customer-form.dto.js';

const ANNA = {
  first_name: 'Anna',
  last_name: null,
  email: 'anna@example.com',
  phone: null,
  birthday: '1990-05-03',
  marketing_consent: true,
  sms_consent: false,
};

describe('the form about a customer', () => {
  it('shows a customer and gives the same back', () => {
    const fields = toCustomerFields(ANNA);
    expect(fields).toMatchObject({ birth_day: '3', birth_month: '5', birth_year: '1990' });
    expect(toCustomerBody(fields)).toEqual(ANNA);
    expect(findChangedFields(fields, fields)).toEqual({});
  });

  it('reads what was entered, without space around it', () => {
    const fields = readCustomerFields({
      first_name: ' Anna ',
      birth_day: '3',
      sms_consent: 'yes',
    });
    expect(fields).toEqual({ ...NO_FIELDS, first_name: 'Anna', birth_day: '3', sms_consent: true });
    expect(toCustomerBody(fields)['birthday']).toBe('-00-03');
  });

  it('sends only what was changed', () => {
    const before = toCustomerFields(ANNA);
    const after = {
      ...before,
      phone: '+49301234567',
      birth_day: '',
      birth_month: '',
      birth_year: '',
    };
    expect(findChangedFields(before, after)).toEqual({ phone: '+49301234567', birthday: null });
  });
});
