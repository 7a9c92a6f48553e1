import { expect, it } from '@jest/globals';
import { renderSenderName } from './sender-name.js';

it.each([
  ['Bäckerei Müller & Söhne', 'Bäckerei Müller & Söhne'],
  ['Café “Zum Löwen”, Köln', 'Café “Zum Löwen”, Köln'],
  ['Booking.example', 'Booking.example'],
  ['مقهى', 'مقهى'],
  ['security@bank.example', undefined],
  ['security＠bank.example', undefined],
  ['security﹫bank.example', undefined],
  ['secu\u200brity@bank.example', undefined],
  ['Bank <security@bank.example>', 'Bank'],
  ['"Bank" "security@bank.example"', '"Bank"'],
  ['security @ bank', 'security bank'],
  ['Anna\r\nBcc: all@bank.example', 'Anna Bcc:'],
  ['\u202eelpmaxe.knab', 'elpmaxe.knab'],
  ['*** !', undefined],
  ['', undefined],
])('renders the store %j as the sender %j', (store, name) => {
  expect(renderSenderName(store)).toBe(name);
});

it('shortens a long name', () => {
  expect(renderSenderName('ü'.repeat(200))).toBe('ü'.repeat(70));
});
