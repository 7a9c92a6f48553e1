import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { findPasswordIssue, MIN_PASSWORD_LENGTH } from './password.js';
import { COMMON_PASSWORDS } from './passwords.service.js';

const USER = {
  email: 'grace.hopper@shop.example',
  name: 'Grace Hopper',
  stores: ['Café Aurora', 'Bo'],
};
const COMMON = new Set(
  COMMON_PASSWORDS.flatMap((path) => {
    const text = readFileSync(createRequire(import.meta.url).resolve(path), 'utf8');
    return JSON.parse(text) as string[];
  }),
);
const findError = (password: string, user = USER) =>
  findPasswordIssue(password, user, COMMON)?.message;

describe('a new password', () => {
  it('is compared with more than 3,000 common ones that are long enough (OWASP ASVS 5.0, 6.2.4)', () => {
    const words = [...COMMON].filter((word) => [...word].length >= MIN_PASSWORD_LENGTH);
    expect(words.length).toBeGreaterThan(3_000);
  });

  it.each([
    'ten chars!',
    'correct horse',
    'correct horse battery',
    'battery staple',
    'twelve green bottles',
    'ẞüßig-genug',
    '🐎🔋📎🐎🔋📎🔑🔑🔑🔑',
    'grace-likes-tea-at-five',
    'inkpad8$kQ2!zV',
    'Pw7-xHq2LmZ0',
    'bobobo-and-more',
  ])('may be %s', (password) => expect(findError(password)).toBeUndefined());

  it.each([
    ['nine char', 'at least 10'],
    ['🐎🔋📎🐎🔋📎🔑🔑🔑', 'at least 10'],
    ['x'.repeat(1001), 'at most 1000'],
    ['1111111111111', 'repeat'],
    ['ababababababab', 'repeat'],
    ['abcd1234abcd1234', 'repeat'],
    ['12345678901234', 'repeat'],
    ['98765432109', 'repeat'],
    ['abcdefghijk', 'repeat'],
    ['1234567890', 'repeat'],
    ['password123', 'many people'],
    ['PASSWORD123', 'many people'],
    ['ｐａｓｓｗｏｒｄ１２３', 'many people'],
    ['Password2026!', 'many people'],
    ['P@ssw0rd2026', 'many people'],
    ['!!!passw0rd!!!', 'many people'],
    ['qwertyuiop', 'many people'],
    ['iloveyou123', 'many people'],
    ['1q2w3e4r5t', 'many people'],
    ['admin12345', 'many people'],
    ['heartbreaker', 'many people'],
    ['Heartbreaker!7', 'many people'],
    ['qwertzuiop', 'too easy'],
    ['QWERTZ12345', 'too easy'],
    ['asdfghjklö', 'follow one another'],
    ['yxcvbnm123', 'too easy'],
    ['Azertyuiop2026', 'too easy'],
    ['1qay2wsx3edc', 'too easy'],
    ['contraseña1', 'your name'],
    ['Passwort2026', 'too easy'],
    ['motdepasse!', 'too easy'],
    ['stempelkarte', 'your name'],
    ['Stempelkarte2026', 'your name'],
    ['bonuskarte1', 'your name'],
    ['loyaltycard', 'your name'],
    ['cartedefidélité', 'your name'],
    ['tarjeta-fidelidad', 'your name'],
    ['princess2026', 'many people'],
    ['Grace.Hopper@shop.example', 'your name'],
    ['grace hopper', 'your name'],
    ['HopperGrace1', 'your name'],
    ['gr4ce-h0pper', 'your name'],
    ['grace.hoppergrace.hopper', 'too easy'],
    ['shop.example', 'your name'],
    ['inkpad2026!', 'your name'],
    ['Inkpad-Inkpad-1', 'your name'],
    ['1nkp4d-2026', 'your name'],
    ['inkpadpassword', 'your name'],
    ['Café Aurora 2026', 'your name'],
    ['cafeaurora'.replace('cafe', 'café'), 'your name'],
    ['aurora-grace-inkpad', 'your name'],
    ['myinkpad2026', 'your name'],
    ['my cat is a \tby', 'invisible characters'],
    ['correct\u200Bhorse', 'invisible characters'],
    ['\u3164\u3164correct horse', 'invisible characters'],
    ['e\u0301e\u0301e\u0301e\u0301e\u0301 abc', 'at least 10'],
    ['grace\u3000hopper', 'your name'],
  ])('may not be %s: %s', (password, message) => {
    expect(findError(password)).toContain(message);
  });

  it('is checked in under two seconds of a processor, however long it is', () => {
    const start = process.cpuUsage();
    for (const text of [
      'ab'.repeat(500),
      `${'a'.repeat(999)}b`,
      'grace'.repeat(200),
      ' '.repeat(1000),
    ]) {
      findError(text);
    }
    expect(Math.max(...Object.values(process.cpuUsage(start)))).toBeLessThan(2_000_000);
  });
});
