import { describe, expect, it } from '@jest/globals';
import { readFile } from './import-file.js';

const read = (text: string, format: 'csv' | 'ndjson' = 'csv') =>
  readFile(Buffer.from(text), format, null);

const MEBIBYTE = 1024 * 1024;
/** As large as a file may be. */
const LARGE = 20 * MEBIBYTE;

describe('readFile of CSV', () => {
  it('numbers rows as spreadsheets do, and leaves blank ones out', async () => {
    const { headers, rows } = await read('a, b\n1,2\n\n,\n"3\n3", 4 \n5\n');
    expect(headers).toEqual(['a', 'b']);
    expect(rows).toEqual([
      { row: 2, cells: ['1', '2'] },
      { row: 5, cells: ['3\n3', '4'] },
      { row: 6, cells: ['5', ''] },
    ]);
  });

  it('reads the line ends of every system', async () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const { rows } = await read(['a;b', '1;2', '3;4'].join(end));
      expect(rows.map(({ cells }) => cells)).toEqual([
        ['1', '2'],
        ['3', '4'],
      ]);
    }
  });

  it('keeps quotation marks in the middle of a cell', async () => {
    expect((await read('a,b\nAnna "Anni" Berg,2')).rows[0]?.cells).toEqual([
      'Anna "Anni" Berg',
      '2',
    ]);
  });

  it('reads rows across the parts that it parses at once', async () => {
    const text = `a,b\n${Array.from({ length: 20_000 }, (_, i) => `${i},"x${i}"\n`).join('')}`;
    const { rows } = await read(text);
    expect(rows).toHaveLength(20_000);
    expect(rows.every(({ cells: [a, b] }) => b === `x${a}`)).toBe(true);
  });

  it.each([
    ['', 'The file is empty'],
    ['\n\n', 'The file is empty'],
    ['a,b\n1,2,3', 'Row 2 has more cells'],
    ['a,b\n1,2\n"3,4\n5,6\n', 'Row 3 cannot be read'],
    [`${'a'.repeat(256)}\n1`, 'A header has more than 255'],
    [Array.from({ length: 201 }, (_, i) => i).join(','), 'more than 200 columns'],
    [`${'a,'.repeat(201)}\n"open`, 'more than 200 columns'],
    ['\na,b\n1,2\n', 'The first row of the file is blank'],
    [' ; \n a;b\n', 'The first row of the file is blank'],
    [`${','.repeat(199_999)}\n`, 'The first row of the file is blank'],
    ['\0\x01\x02', 'This is not a text file'],
    ['<html><body><table><tr><td>email', 'This is a web page'],
    ['<?xml version="1.0"?><rows/>', 'This is a web page'],
    [`a\n${'1\n'.repeat(50_001)}`, 'more than 50000 rows'],
    [`a\n${'1\n'.repeat(100_001)}`, 'more than 50000 rows'],
  ])('refuses %j', async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });
});

describe('readFile of JSON', () => {
  it.each([
    '[{"email":"a@example.com"}]',
    '[\n  {\n    "email": "a@example.com"\n  }\n]',
    '\uFEFF [ {"email":"a@example.com"} ]',
    '[]',
    '[["email"],["a@example.com"]]',
    '{\n  "customers": [\n    {"email": "a@example.com"}\n  ]\n}',
  ])('says what %j is', async (text) => {
    for (const format of ['csv', 'ndjson'] as const) {
      await expect(read(text, format)).rejects.toThrow('not one object on each line');
    }
  });

  it('takes a header in brackets for what it is', async () => {
    expect((await read('[id],[email]\n1,a@example.com')).headers).toEqual(['[id]', '[email]']);
  });
});

describe('readFile of any bytes', () => {
  it.each([
    ['xlsx or ods', '504b0304', 'This is an Excel workbook'],
    ['an empty ZIP archive', '504b0506', 'This is an Excel workbook'],
    ['xls', 'd0cf11e0a1b11ae1', 'This is an Excel workbook'],
    ['PDF', '255044462d312e37', 'This is not a text file'],
    ['gzip', '1f8b0800', 'This is not a text file'],
    ['PNG', '89504e470d0a1a0a', 'This is not a text file'],
    ['JPEG', 'ffd8ffe0', 'This is not a text file'],
    ['RTF', '7b5c72746631', 'This is not a text file'],
    ['anything else', '00010203', 'This is not a text file'],
  ])('refuses %s', async (_, hex, message) => {
    for (const format of ['csv', 'ndjson'] as const) {
      const bytes = Buffer.concat([Buffer.from(hex, 'hex'), Buffer.alloc(100, 7)]);
      await expect(readFile(bytes, format, null)).rejects.toThrow(message);
    }
  });

  it.each([
    ['windows-1252', 'utf-8', 'a,b\n1,2\n"x\ny",ü\n', 'Row 3 has a character'],
    ['windows-1252', 'utf-8', 'a,"ü\n', 'Row 1 has a character'],
    ['windows-1252', 'utf-8', 'sep=,\na,b\n1,ü\n', 'Row 2 has a character'],
  ])('names the row of a byte that is no %s but %s', async (_, declared, text, message) => {
    const bytes = Buffer.from(text, 'latin1');
    await expect(readFile(bytes, 'csv', declared)).rejects.toThrow(message);
  });

  it('names the row of a stray byte in UTF-8', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => `m${i}@example.com,Müller\n`);
    const bytes = Buffer.concat([
      Buffer.from(`email,last_name\n${rows.slice(0, 100).join('')}`),
      Buffer.from('x@example.com,Müller\n', 'latin1'),
      Buffer.from(rows.slice(100).join('')),
    ]);
    await expect(readFile(bytes, 'csv', null)).rejects.toThrow('Row 102 has a character');
    const lines = Buffer.concat([
      Buffer.from('{"a":"ü"}\n{"a":"ö"}\n'),
      Buffer.from('{"a":"ü"}\n', 'latin1'),
    ]);
    await expect(readFile(lines, 'ndjson', null)).rejects.toThrow('Row 3 has a character');
  });

  it('counts no more rows before a damaged one than a file may have', async () => {
    const bytes = Buffer.concat([Buffer.alloc(LARGE, '\n'), Buffer.from([0xff])]);
    for (const format of ['csv', 'ndjson'] as const) {
      await expect(readFile(bytes, format, 'utf-8')).rejects.toThrow(
        'A row after row 100000 has a character',
      );
    }
  });

  it('reads a file in the encoding that is declared', async () => {
    const bytes = Buffer.from([0x61, 0x3b, 0x62, 0x0a, 0xa3, 0x3b, 0xaf]);
    const { rows, encoding } = await readFile(bytes, 'csv', 'windows-1250');
    expect([rows[0]?.cells, encoding]).toEqual([['Ł', 'Ż'], 'windows-1250']);
  });

  it.each([
    ['commas', ','],
    ['quotation marks', '"'],
    ['letters', 'x'],
    ['blanks before a letter', ' '],
    ['invisible characters', '\u200B'],
    ['apostrophes', "'"],
    ['opened lists', '['],
    ['opened objects', '{"a":'],
  ])('refuses 20 MiB of %s without a line end', async (_, part) => {
    const bytes = Buffer.from(part.repeat(LARGE / Buffer.byteLength(part)));
    await expect(readFile(bytes, 'csv', null)).rejects.toThrow('Row 1 cannot be read');
    await expect(readFile(bytes, 'ndjson', null)).rejects.toThrow('Row 1 cannot be read');
  });

  it.each([
    ['blank lines', '\n', 'The file is empty', 'The file has more than 50000 rows'],
    ['half a row in each line', 'a\n', 'more than 50000 rows', 'Row 1 is not valid JSON'],
  ])('refuses 20 MiB of %s', async (_, part, inCsv, inNdjson) => {
    const bytes = Buffer.alloc(LARGE, part);
    await expect(readFile(bytes, 'csv', null)).rejects.toThrow(inCsv);
    await expect(readFile(bytes, 'ndjson', null)).rejects.toThrow(inNdjson);
  });

  it('lets other work come between the rows of a large file', async () => {
    const row = `${'x'.repeat(400)}\n`;
    const bytes = Buffer.from(`a\n${row.repeat(49_000)}`);
    let count = 0;
    const timer = setInterval(() => count++, 1);
    try {
      expect((await readFile(bytes, 'csv', null)).rows).toHaveLength(49_000);
    } finally {
      clearInterval(timer);
    }
    expect(count).toBeGreaterThan(0);
  });
});

describe('readFile of NDJSON', () => {
  it('reads lines across the parts that it decodes at once', async () => {
    const text = Array.from({ length: 20_000 }, (_, i) => `{"a":${i},"b":"ü${i}"}\n`).join('');
    const { rows } = await read(text, 'ndjson');
    expect(rows).toHaveLength(20_000);
    expect(rows.every(({ row, cells: [a, b] }, i) => row === i + 1 && b === `ü${a}`)).toBe(true);
  });

  it('takes the keys of all lines for headers', async () => {
    const { headers, rows } = await read('{"a":1,"b":true}\n\n{"b":null,"c":"x"}\r\n', 'ndjson');
    expect(headers).toEqual(['a', 'b', 'c']);
    expect(rows).toEqual([
      { row: 1, cells: ['1', 'true', ''] },
      { row: 3, cells: ['', '', 'x'] },
    ]);
  });

  it.each([
    ['{"a":1}\n{', 'Row 2 is not valid JSON'],
    ['[1]', 'Row 1 is not a JSON object'],
    ['{"a":{}}', 'Row 1: a must be'],
    ['{"a":9007199254740993}', 'Row 1: a must be'],
    [`{"a":${'['.repeat(500_000)}`, 'Row 1 has more than 16 levels'],
    [`{"a":1}\n{"a":${'{"a":'.repeat(17)}`, 'Row 2 has more than 16 levels'],
    [`{"a":[[[]]]}`, 'Row 1: a must be'],
  ])('refuses %s', async (text, message) => {
    await expect(read(text, 'ndjson')).rejects.toThrow(message);
  });

  it('counts no brackets in strings', async () => {
    const text = `${'['.repeat(50)}\\"${'{'.repeat(50)}`;
    const { rows } = await read(JSON.stringify({ a: text }), 'ndjson');
    expect(rows[0]?.cells).toEqual([text]);
  });

  it('takes __proto__ for a header like any other', async () => {
    const { headers } = await read('{"__proto__":"x","constructor":"y"}', 'ndjson');
    expect(headers).toEqual(['__proto__', 'constructor']);
  });
});
