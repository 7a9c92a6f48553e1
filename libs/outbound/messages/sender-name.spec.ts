import { expect, it } from '@jest/globals';
import { renderHeaderText, renderSenderName } from './sender-name.js';

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
  ['=?utf-8?q?security=40bank=2Eexample?=', undefined],
  ['=?UTF-8?B?c2VjdXJpdHlAYmFuay5leGFtcGxl?=', undefined],
  ['Bank =?utf-8?q?security=40bank?= Köln', 'Bank Köln'],
  ['a=?utf-8?q?x?=b', undefined],
  ['=\u200b?utf-8?q?security=40bank?=', undefined],
  ['＝？utf-8？q？security=40bank？＝', undefined],
  ['security(at)bank.example', undefined],
  ['Bank security (at) bank.example', 'Bank security bank.example'],
  ['security[AT]bank.example', undefined],
  ['security&#64;bank.example', undefined],
  ['security&#x40;bank.example', undefined],
  ['security&commat;bank.example', undefined],
  ['security%40bank.example', undefined],
  ['Coffee at Home', 'Coffee at Home'],
  ['1+1=? Quiz', 'Quiz'],
  ['*** !', undefined],
  ['', undefined],
])('renders the store %j as the sender %j', (store, name) => {
  expect(renderSenderName(store)).toBe(name);
});

it('shortens a long name', () => {
  expect(renderSenderName('ü'.repeat(200))).toBe('ü'.repeat(70));
});

it.each([
  ['=?utf-8?q?security=40bank?= has news', '= ?utf-8?q?security=40bank?= has news'],
  ['2+2=?', '2+2= ?'],
  ['Closed on Monday', 'Closed on Monday'],
])('renders the subject %j so that nothing is decoded in it', (subject, header) => {
  expect(renderHeaderText(subject)).toBe(header);
});
