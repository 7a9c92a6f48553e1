import { describe, expect, it } from '@jest/globals';
import { readFile } from './import-file.js';

const read = (text: string, format: 'csv' | 'ndjson' = 'csv') =>
  readFile(Buffer.from(text), format);

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
    [`a\n${'1\n'.repeat(50_001)}`, 'more than 50000 rows'],
    [`a\n${'1\n'.repeat(100_001)}`, 'more than 50000 rows'],
  ])('refuses %j', async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });
});

describe('readFile of NDJSON', () => {
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
  ])('refuses %s', async (text, message) => {
    await expect(read(text, 'ndjson')).rejects.toThrow(message);
  });

  it('takes __proto__ for a header like any other', async () => {
    const { headers } = await read('{"__proto__":"x","constructor":"y"}', 'ndjson');
    expect(headers).toEqual(['__proto__', 'constructor']);
  });
});
