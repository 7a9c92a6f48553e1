import { describe, expect, it } from '@jest/globals';
import { DelimitedText, MAX_ROW_LENGTH, readCellText } from './delimited-text.js';

function read(text: string, separator: ',' | ';' | '\t' = ','): string[][] {
  const table = new DelimitedText([text], separator);
  const rows: string[][] = [];
  for (let next; (next = table.next(9)) !== undefined;) rows.push(next.cells);
  return rows;
}

describe('DelimitedText', () => {
  it('reads the same rows, however the text is divided', () => {
    const text = 'a,"b\n""c""" \r\n\r\n1,2\rx" y,"z"';
    for (const parts of [[...text], ['', text, ''], [text.slice(0, 7), text.slice(7)]]) {
      const table = new DelimitedText(parts, ',');
      expect(Array.from({ length: 5 }, () => table.next(9)?.cells)).toEqual([
        ['a', 'b\n"c"'],
        [''],
        ['1', '2'],
        ['x" y', 'z'],
        undefined,
      ]);
    }
  });

  it('holds no more of the text than a few rows of the maximum length', () => {
    const row = 'x'.repeat(999);
    let length = 0;
    function* readParts() {
      for (; length < 20 * MAX_ROW_LENGTH; length += 1_000) yield `${row}\n`;
    }
    const table = new DelimitedText(readParts(), ',');
    expect(table.next(9)?.cells).toEqual([row]);
    expect(length).toBeLessThan(4 * MAX_ROW_LENGTH);
    const others = new Set<string | undefined>();
    for (let next; (next = table.next(9)) !== undefined;) others.add(next.cells[0]);
    expect([...others]).toEqual([row]);
    expect(table.row).toBe(length / 1_000);
  });

  it.each([
    ['a,b\n1,2', 'LF'],
    ['a,b\r\n1,2\r\n', 'CRLF'],
    ['a,b\r1,2\r', 'CR'],
    ['a,b\r\n1,2\n', 'a header with CRLF and rows with LF'],
    ['a,b\n1,2\r\n', 'a header with LF and rows with CRLF'],
    ['a,b\r1,2\r\n', 'a header with CR and rows with CRLF'],
    ['"a","b"\n"1","2"\r\n', 'quotes before every line end'],
    ['"a","b"\r\n"1","2"\r', 'quotes before CR'],
    ['a,b\n1,2', 'no line end at the end'],
    ['"a","b"\n"1","2"', 'a quote at the end'],
  ])('reads %j: %s', (text) => {
    expect(read(text)).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ]);
  });

  it.each([
    ['"Miller"', ['Miller']],
    ['"a,b",c', ['a,b', 'c']],
    ['"a\nb",c', ['a\nb', 'c']],
    ['"a\r\nb",c', ['a\r\nb', 'c']],
    ['"say ""hi""",c', ['say "hi"', 'c']],
    ['"",""', ['', '']],
    ['""""', ['"']],
    ['"""",c', ['"', 'c']],
    [',,', ['', '', '']],
    ['a, "Ann", "Miller"', ['a', 'Ann', 'Miller']],
    ['"Ann" ,"Miller" ', ['Ann', 'Miller']],
    ['"Ann"\t,\u00A0"Miller"', ['Ann', 'Miller']],
    ['a, "Miller, Ann" ,b', ['a', 'Miller, Ann', 'b']],
    ['5" pipe,b', ['5" pipe', 'b']],
    ['Ann "Annie" Smith,b', ['Ann "Annie" Smith', 'b']],
    ['"Ann" Smith,b', ['"Ann" Smith', 'b']],
    ['"Ann, A" Smith,b', ['"Ann, A" Smith', 'b']],
    ['""Miller"",b', ['""Miller""', 'b']],
    ['"""Miller""",b', ['"Miller"', 'b']],
    ["'Miller',b", ["'Miller'", 'b']],
  ])('reads the cells of %j', (text, cells) => {
    expect(read(text)).toEqual([cells]);
  });

  it('takes tabs around quotes for blanks, unless they separate', () => {
    expect(read('"a"\t"b"', '\t')).toEqual([['a', 'b']]);
    expect(read('\t"a"\t;b', ';')).toEqual([['a', 'b']]);
  });

  it('counts rows as spreadsheets do', () => {
    const table = new DelimitedText(['a\n"1\n2"\n\n3'], ',');
    const rows = [table.next(1), table.next(1), table.next(1), table.next(1), table.next(1)];
    expect(rows.map((next) => next && [next.row, ...next.cells])).toEqual([
      [1, 'a'],
      [2, '1\n2'],
      [3, ''],
      [4, '3'],
      undefined,
    ]);
  });

  it('leaves cells out after some number of them, and tells whether they have text', () => {
    const table = new DelimitedText([`a,b${','.repeat(100_000)}\na,b, ,c\n`], ',');
    expect(table.next(2)).toEqual({ row: 1, cells: ['a', 'b'], hasMore: false });
    expect(table.next(2)).toEqual({ row: 2, cells: ['a', 'b'], hasMore: true });
  });

  it.each([
    ['"open', 'Row 1 cannot be read: a quotation mark is not closed'],
    ['a\nb\n"open\nc\n', 'Row 3 cannot be read: a quotation mark is not closed'],
    ['"""', 'Row 1 cannot be read: a quotation mark is not closed'],
  ])('refuses the open row in %j', (text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  it.each(['x', ',', '"', '""', ' ', '" ', '="', '" x'])(
    'refuses a row of more than a million characters like %j',
    (part) => {
      const text = part.repeat(MAX_ROW_LENGTH + 1);
      expect(() => read(text)).toThrow('Row 1 cannot be read: it has more than 1048576 characters');
    },
  );
});

describe('readCellText', () => {
  it.each([
    ['="00123"', '00123'],
    [' ="00123" ', '00123'],
    ['="a ""b"""', 'a "b"'],
    ['=""', ''],
    ['="a"&"b"', '="a"&"b"'],
    ['=1+1', '=1+1'],
    ['="', '="'],
    ["'=1+1", '=1+1'],
    ["''=1+1", "'=1+1"],
    ["'@anna", '@anna'],
    ["'+49 151", '+49 151'],
    ["'＝1", '＝1'],
    ["x;'=1", 'x;=1'],
    [`'="00123"`, '="00123"'],
    ["'Anna", "'Anna"],
    ["Rock 'n' roll", "Rock 'n' roll"],
  ])('of %j is %j', (cell, text) => {
    expect(readCellText(cell)).toBe(text);
  });
});
