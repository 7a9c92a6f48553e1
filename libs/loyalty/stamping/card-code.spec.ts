import { expect, it } from '@jest/globals';
import { normalizeCardCode } from './card-code.js';

it.each([
  'K7QX2M9P',
  'k7qx2m9p',
  'K7QX2M9P\r',
  ' K7QX2M9P\r\n',
  '\tk7Qx2M9p\u00A0',
  '\uFEFFK7QX2M9P\u200B',
  'K7QX\u200D2M9P',
  'k7qx 2m9p',
  'K7QX-2M9P',
  'K7QX – 2M9P',
  'Ｋ７ＱＸ２Ｍ９Ｐ',
  'ｋ７ｑｘ２ｍ９ｐ',
  'K٧QX٢M٩P',
  'K۷QX۲M۹P',
])('normalizeCardCode reads K7QX2M9P from %j', (text) => {
  expect(normalizeCardCode(text)).toBe('K7QX2M9P');
});
