import { expect, it } from '@jest/globals';
import type { Customer } from '#loyalty/customers/customer.js';
import { ISSUES } from '#translations/issues.js';
import { findFormerValues } from './former-values.js';

const person = (fields: Partial<Customer>) =>
  ({
    firstName: 'Anna',
    lastName: null,
    email: 'a@example.com',
    smsConsent: false,
    ...fields,
  }) as Customer;
const before = person({});
const after = person({ lastName: 'Berg', smsConsent: true });

it('gives back what the import changed, and nothing else', () => {
  const current = person({ lastName: 'Berg', smsConsent: true, firstName: 'Anne' });
  expect(findFormerValues(before, after, current)).toEqual({
    changes: { lastName: null, smsConsent: false },
  });
});

it('refuses what was changed since, and names it', () => {
  const current = person({ lastName: 'Busch', smsConsent: true });
  expect(findFormerValues(before, after, current)).toEqual({
    errors: { last_name: [ISSUES.changed_since_import] },
  });
});

it('changes nothing when it was given back already', () => {
  expect(findFormerValues(before, after, before)).toEqual({ changes: {} });
});
