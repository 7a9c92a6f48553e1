import { describe, expect, it } from '@jest/globals';
import { isContact, readNewCustomer, sortByMatch } from './counter-customer.js';

const read = (contact: string, name = '') => readNewCustomer(name, contact, 'Guest');

describe('a new customer', () => {
  it('has the name that was typed', () => {
    expect(read('0151 234567', ' Zoë  de la Cruz ')).toEqual({
      first_name: 'Zoë',
      last_name: 'de la Cruz',
      phone: '0151 234567',
    });
    expect(read('z@mail.example', 'Zoë')).toEqual({ first_name: 'Zoë', email: 'z@mail.example' });
  });

  it('is otherwise called as the first word of the address', () => {
    expect(read(' anna.berg@mail.example ')).toEqual({
      first_name: 'Anna',
      email: 'anna.berg@mail.example',
    });
    expect(read('7@mail.example')).toEqual({ first_name: 'Guest', email: '7@mail.example' });
  });

  it.each(['+49 151 2345678', '0151/234 56-78', '(030) 123456', '٠١٥١٢٣٤٥٦'])(
    'is the phone number %s',
    (phone) => {
      expect(isContact(phone)).toBe(true);
      expect(read(phone)).toEqual({ first_name: 'Guest', phone });
    },
  );

  it.each(['Anna van der Berg', 'محمد', '12', '', '  '])('cannot be reached by %p', (text) => {
    expect(isContact(text)).toBe(false);
  });
});

describe('the order of results', () => {
  const sort = (text: string, ...names: [string | null, string | null][]) =>
    sortByMatch(
      names.map(([first_name, last_name]) => ({ first_name, last_name })),
      text,
    ).map(({ first_name, last_name }) => `${first_name} ${last_name}`);

  it('begins with names that begin with the text, in any case', () => {
    expect(
      sort('LOTTE', ['Charlotte', 'Berg'], ['Lotte', 'Adler'], ['Ida', 'Lottenburg'], [null, null]),
    ).toEqual(['Lotte Adler', 'Ida Lottenburg', 'Charlotte Berg', 'null null']);
  });

  it('takes the text literally, and otherwise keeps the order', () => {
    expect(sort('.', ['B', 'B'], ['A', 'A'])).toEqual(['B B', 'A A']);
    expect(sort('anna b', ['Susanna', 'Berg'], ['Anna', 'Berg'])).toEqual([
      'Anna Berg',
      'Susanna Berg',
    ]);
  });
});
