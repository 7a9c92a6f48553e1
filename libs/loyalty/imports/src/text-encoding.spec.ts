import { describe, expect, it } from '@jest/globals';
import { decodeText, findSeparator } from './text-encoding.js';

const bytes = (text: string, encoding: BufferEncoding) =>
  new Uint8Array(Buffer.from(text, encoding));

describe('decodeText', () => {
  it.each([
    ['UTF-8', bytes('Größe', 'utf8'), 'utf-8'],
    ['UTF-8 with a mark', bytes('\uFEFFGröße', 'utf8'), 'utf-8'],
    ['UTF-16 with a mark', bytes('\uFEFFGröße', 'utf16le'), 'utf-16le'],
    ['UTF-16 without a mark', bytes('Größe', 'utf16le'), 'utf-16le'],
    [
      'big-endian UTF-16',
      new Uint8Array(Buffer.from('\uFEFFGröße', 'utf16le').swap16()),
      'utf-16be',
    ],
    ['Windows-1252', bytes('Größe', 'latin1'), 'windows-1252'],
  ])('reads %s', (_, file, encoding) => {
    expect(decodeText(file)).toEqual({ text: 'Größe', encoding });
  });

  it('reads the euro sign and quotation marks of Windows-1252', () => {
    expect(decodeText(Uint8Array.of(0x80, 0x84, 0x93))?.text).toBe('€„“');
  });

  it('refuses bytes that are not of the encoding that the mark names', () => {
    expect(decodeText(Uint8Array.of(0xef, 0xbb, 0xbf, 0xff))).toBeUndefined();
    expect(decodeText(Uint8Array.of(0xff, 0xfe, 0x00, 0xd8, 0x41))).toBeUndefined();
  });

  it('reads an empty file', () => {
    expect(decodeText(new Uint8Array())).toEqual({ text: '', encoding: 'utf-8' });
  });
});

describe('findSeparator', () => {
  it.each([
    ['a,b;c,d\n1;2;3;4', ','],
    ['a;b\n1,2,3', ';'],
    ['a\tb\n', '\t'],
    ['"a,b,c";d\n', ';'],
    ['"a\n,,,";b;c\n', ';'],
    ['email\n', ','],
  ])('of %j is %j', (text, separator) => {
    expect(findSeparator(text)).toEqual({ separator, rest: text });
  });

  it('is what the first line of a file from Excel says', () => {
    expect(findSeparator('sep=;\r\na,b\n')).toEqual({ separator: ';', rest: 'a,b\n' });
  });
});
