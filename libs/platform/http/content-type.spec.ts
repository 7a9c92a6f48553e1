import { expect, it } from '@jest/globals';
import { findTypeParameter } from './content-type.js';

it('findTypeParameter finds a parameter, quoted or not, in any case and position', () => {
  for (const [contentType, charset] of [
    ['text/csv; charset=utf-8', 'utf-8'],
    ['text/csv;CHARSET = utf-8', undefined],
    ['text/csv;Charset=UTF-8 ; header=present', 'UTF-8'],
    ['text/csv; header=present; charset="windows-1252"', 'windows-1252'],
    ['text/csv; charset="a\\"b; c"', 'a"b; c'],
    ['text/csv; note="; charset=utf-16"; charset=utf-8', 'utf-8'],
    ['text/csv; charset=utf-8; charset=utf-16', 'utf-8'],
    ['text/csv; charset="', '"'],
    ['text/csv; charset=', ''],
    ['text/csv; xcharset=utf-8', undefined],
    ['text/csv', undefined],
    [undefined, undefined],
  ] as const) {
    expect([contentType, findTypeParameter(contentType, 'charset')]).toEqual([
      contentType,
      charset,
    ]);
  }
});
