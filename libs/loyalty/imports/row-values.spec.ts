import { expect, it } from '@jest/globals';
import { listUniqueValues } from '#loyalty/customers/customer.js';
import { listRowValues } from './row-values.js';

it.each([
  ['AR', '011 15 2345 6789', '+5491123456789'],
  ['AR', '+54 9 11 2345 6789', '+541123456789'],
  ['MX', '044 55 1234 5678', '+525512345678'],
])('lists a number of %s, %s, as customers claim it', (country, cell, phone) => {
  const personal = { firstName: 'Ana', lastName: null, email: null, birthday: null, metadata: {} };
  const claimed = listUniqueValues({ ...personal, phone, externalReferences: [] });
  const columns = [{ name: 'Telefono', field: null }];
  expect(listRowValues([cell], columns, country).values).toEqual(claimed);
});
