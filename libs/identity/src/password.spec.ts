import { describe, expect, it } from '@jest/globals';
import { passwordFault } from './password.js';

const USER = { email: 'grace.hopper@shop.example', name: 'Grace Hopper' };

describe('a new password', () => {
  it.each(['ten chars!', 'correct horse battery', 'ẞüßig-genug', '🐎🔋📎🐎🔋📎🔑🔑🔑🔑'])(
    'may be %s',
    (password) => expect(passwordFault(password, USER)).toBeUndefined(),
  );

  it.each([
    ['nine char', 'at least 10'],
    ['🐎🔋📎🐎🔋📎🔑🔑🔑', 'at least 10'],
    ['x'.repeat(1001), 'at most 1000'],
    ['Grace.Hopper@shop.example', 'too easy'],
    ['grace hopper', 'too easy'],
    ['1111111111111', 'too easy'],
    ['ababababababab', 'too easy'],
    ['my cat is a \tby', 'invisible characters'],
    ['correct\u200Bhorse', 'invisible characters'],
    ['\u3164\u3164correct horse', 'invisible characters'],
    ['e\u0301e\u0301e\u0301e\u0301e\u0301 abc', 'at least 10'],
    ['grace\u3000hopper', 'too easy'],
  ])('may not be %s: %s', (password, fault) => {
    expect(passwordFault(password, USER)).toContain(fault);
  });
});
