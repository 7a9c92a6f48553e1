import { describe, expect, it } from '@jest/globals';
import { readNewCustomer } from './counter-customer.js';

const read = (text: string) => readNewCustomer(text, 'Guest');

describe('a new customer in one field', () => {
  it('is an e-mail address, whose first word may be the name', () => {
    expect(read(' anna.berg@mail.example ')).toEqual({
      first_name: 'Anna',
      email: 'anna.berg@mail.example',
    });
    expect(read('7@mail.example')).toEqual({ first_name: 'Guest', email: '7@mail.example' });
  });

  it.each(['+49 151 2345678', '0151/234 56-78', '(030) 123456', '٠١٥١٢٣٤٥٦'])(
    'is the phone number %s',
    (phone) => expect(read(phone)).toEqual({ first_name: 'Guest', phone }),
  );

  it.each(['Anna van der Berg', 'محمد', '12', '', '  '])('is neither of both in %p', (text) => {
    expect(read(text)).toBeUndefined();
  });
});
