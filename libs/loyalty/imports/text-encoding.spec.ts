import { describe, expect, it } from '@jest/globals';
import { decodeText, findEncoding, findSeparator } from './text-encoding.js';

const bytes = (text: string, encoding: BufferEncoding) =>
  new Uint8Array(Buffer.from(text, encoding));

async function read(file: Uint8Array, declared: string | null) {
  const decoded = await decodeText(file, declared);
  if (!decoded) return undefined;
  const { encoding, damagedAt, readParts } = decoded;
  return { text: [...readParts()].join(''), encoding, damagedAt };
}

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
  ])('reads %s', async (_, file, encoding) => {
    const decoded = { text: 'Größe', encoding, damagedAt: null };
    expect(await read(file, null)).toEqual(decoded);
    expect(await read(file, encoding)).toEqual(decoded);
  });

  it('reads the euro sign and quotation marks of Windows-1252', async () => {
    expect((await read(Uint8Array.of(0x80, 0x84, 0x93), null))?.text).toBe('€„“');
  });

  it.each([
    ['windows-1250', [0xa3, 0x75, 0x6b, 0x61, 0x73, 0x7a], 'Łukasz'],
    ['windows-1251', [0xc8, 0xe2, 0xe0, 0xed], 'Иван'],
    ['iso-8859-2', [0xa3, 0xf3, 0x64, 0xbc], 'Łódź'],
    ['macintosh', [0x4d, 0x9f, 0x6c, 0x6c, 0x65, 0x72], 'Müller'],
    ['shift_jis', [0x8e, 0x52, 0x93, 0x63], '山田'],
    ['utf-16le', [0x41, 0x00, 0x62, 0x00], 'Ab'],
  ])('reads what is declared as %s', async (encoding, file, text) => {
    expect(await read(Uint8Array.from(file), encoding)).toEqual({
      text,
      encoding,
      damagedAt: null,
    });
  });

  it('takes the declared encoding before what the bytes look like', async () => {
    expect((await read(bytes('Größe', 'utf8'), 'windows-1252'))?.text).toBe('GrÃ¶ÃŸe');
    expect((await read(bytes('Größe', 'latin1'), 'utf-8'))?.damagedAt).toBe(2);
  });

  it('refuses a mark of another encoding than is declared', async () => {
    for (const mark of [
      [0xef, 0xbb, 0xbf],
      [0xff, 0xfe],
    ]) {
      expect(await read(Uint8Array.from([...mark, 65, 0]), 'windows-1250')).toBeUndefined();
    }
    const wide = new Uint8Array(Buffer.from('\uFEFFA', 'utf16le').swap16());
    expect(await read(wide, 'utf-16le')).toMatchObject({ text: 'A', encoding: 'utf-16be' });
  });

  it('finds bytes that are not of the encoding that the mark names', async () => {
    const utf8 = await read(Uint8Array.of(0xef, 0xbb, 0xbf, 65, 0xff), null);
    expect([utf8?.encoding, utf8?.damagedAt]).toEqual(['utf-8', 1]);
    const utf16 = await read(Uint8Array.of(0xff, 0xfe, 0x00, 0xd8, 0x41), null);
    expect([utf16?.encoding, utf16?.damagedAt]).toEqual(['utf-16le', 0]);
  });

  it('takes UTF-8 with a stray byte for damaged, and not for Windows-1252', async () => {
    const mixed = [bytes('Müller\n'.repeat(200), 'utf8'), bytes('Müller\n', 'latin1')];
    for (const parts of [mixed, mixed.toReversed()]) {
      const decoded = await read(Buffer.concat(parts), null);
      expect([decoded?.encoding, decoded?.damagedAt]).not.toEqual(['utf-8', null]);
      expect(decoded?.encoding).toBe('utf-8');
    }
    const cut = bytes('Müller, Größe, ü', 'utf8').subarray(0, -1);
    expect((await read(cut, null))?.damagedAt).toBe(15);
    const western = bytes(`${'Müller\n'.repeat(200)}É\xbb`, 'latin1');
    expect((await read(western, null))?.encoding).toBe('windows-1252');
  });

  it('reads characters across the parts that it decodes at once', async () => {
    const text = 'aü€🌙'.repeat(30_000);
    expect((await read(bytes(text, 'utf8'), null))?.text).toBe(text);
    expect((await read(bytes(`\uFEFF${text}`, 'utf16le'), null))?.text).toBe(text);
  });

  it('reads an empty file', async () => {
    expect(await read(new Uint8Array(), null)).toEqual({
      text: '',
      encoding: 'utf-8',
      damagedAt: null,
    });
  });
});

describe('findEncoding', () => {
  it.each([
    ['UTF-8', 'utf-8'],
    ['utf8', 'utf-8'],
    ['ISO-8859-1', 'windows-1252'],
    ['latin1', 'windows-1252'],
    ['us-ascii', 'windows-1252'],
    ['cp1250', 'windows-1250'],
    ['UTF-16', 'utf-16le'],
    ['utf-7', undefined],
    ['cp850', undefined],
    ['', undefined],
    ['none', undefined],
  ])('of the label %j is %j', (label, encoding) => {
    expect(findEncoding(label)).toBe(encoding);
  });
});

describe('findSeparator', () => {
  it.each([
    ['a,b;c,d\n1;2;3;4', ','],
    ['a;b\n1,2,3', ';'],
    ['a\tb\n', '\t'],
    ['"a,b,c";d\n', ';'],
    ['"a\n,,,";b;c\n', ';'],
    ['"a"",,,";b\n', ';'],
    ['a" ,b;c;d\n', ';'],
    [' ",,,";b\r1,2,3,4', ';'],
    [','.repeat(100_000), ','],
    ['"'.repeat(100_001), ','],
    ['x'.repeat(200_000), ','],
    ['email\n', ','],
  ])('of %j is %j', (text, separator) => {
    expect(findSeparator(text)).toEqual({ separator, start: 0 });
  });

  it('is what the first line of a file from Excel says', () => {
    for (const first of ['sep=;\r\n', 'SEP=;\n', '"sep=;"\r']) {
      expect(findSeparator(`${first}a,b\n`)).toEqual({ separator: ';', start: first.length });
    }
  });
});
