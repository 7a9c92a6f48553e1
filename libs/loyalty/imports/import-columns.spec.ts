import { describe, expect, it } from '@jest/globals';
import { ISSUES } from '#translations/issues.js';
import {
  listFieldsOfCards,
  resolveColumns,
  suggestColumns,
  type MappingRequest,
} from './import-columns.js';

const fieldsOf = (headers: string[], mapping: MappingRequest = {}) =>
  resolveColumns(headers, mapping).columns?.map(({ field }) => field);

describe('suggestColumns', () => {
  const suggest = (headers: string[], hasCard = true) =>
    suggestColumns(headers, hasCard).columns?.map(({ field }) => field);

  it('suggests as many columns as the headers tell, though nobody could be found by them', () => {
    expect(suggest(['Vorname', 'Spalte 2'])).toEqual(['first_name', null]);
    expect(suggest(['A', 'B'])).toEqual([null, null]);
  });

  it('gives a field to the first of two columns for it', () => {
    expect(suggest(['Email', 'Mail', 'Vorname'])).toEqual(['email', null, 'first_name']);
  });

  it('ignores columns of cards where there is none', () => {
    expect(suggest(['Email', 'Stempel'], false)).toEqual(['email', null]);
    expect(suggest(['Email', 'Stempel'])).toEqual(['email', 'stamps']);
  });

  it('refuses two columns with the same header, which nothing can tell apart', () => {
    expect(suggestColumns(['Email', 'Email'], true).errors).toHaveLength(1);
  });
});

describe('resolveColumns', () => {
  it('ignores case, accents, spaces and punctuation of headers', () => {
    expect(fieldsOf(['E-MAIL', 'PRÉNOM', 'date_of_birth', 'Kunden-Nr.'])).toEqual([
      'email',
      'first_name',
      'birthday',
      'external_id',
    ]);
  });

  it('takes a name for the last one beside a first name, and for the whole name alone', () => {
    expect(fieldsOf(['Vorname', 'Name', 'Email'])).toEqual(['first_name', 'last_name', 'email']);
    expect(fieldsOf(['Name', 'Email'])).toEqual(['first_name', 'email']);
    expect(fieldsOf(['X', 'Nom', 'Email'], { X: 'first_name' })).toEqual([
      'first_name',
      'last_name',
      'email',
    ]);
  });

  it('lets the mapping decide, and ignores another column for the same field', () => {
    expect(fieldsOf(['Email', 'Mail 2'], { 'Mail 2': 'email' })).toEqual([null, 'email']);
    expect(fieldsOf(['Email', 'Phone'], { Phone: null })).toEqual(['email', null]);
  });

  it.each([
    [['email', 'E-Mail'], {}, 'has to say which column is email: email or E-Mail'],
    [['email', 'email'], {}, 'finds two columns that are called email'],
    [['email'], { Phone: 'phone' }, 'names the column Phone, which the file does not have'],
    [['a', 'b'], { a: 'email', b: 'email' }, 'has to say which column is email: a or b'],
  ] as const)('refuses %j with the mapping %j', (headers, mapping, error) => {
    expect(resolveColumns(headers, mapping).errors?.map(({ message }) => message)).toContain(error);
  });

  it('refuses a file that identifies nobody', () => {
    expect(resolveColumns(['first_name', 'constructor'], {}).errors).toEqual([
      ISSUES.column_missing({
        fields: 'email, phone, external_id',
        headers: 'first_name, constructor',
      }),
    ]);
  });
});

describe('listFieldsOfCards', () => {
  it('lists stamps and code', () => {
    const { columns = [] } = resolveColumns(['email', 'Stempel', 'Barcode'], {});
    expect(listFieldsOfCards(columns)).toEqual(['stamps', 'code']);
  });
});
