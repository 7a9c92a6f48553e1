import { describe, expect, it } from '@jest/globals';
import { guardFormulas, renderCsvLine, unguardFormulas } from './csv.js';

describe('a line of CSV', () => {
  it('has plain values as they are, and empty cells for null', () => {
    expect(renderCsvLine([1, 'Anna', null, false, -3])).toBe('1,Anna,,false,-3\r\n');
  });

  it('quotes what separates cells or lines', () => {
    expect(renderCsvLine(['a,b', 'say "hi"', 'two\nlines', ' x'])).toBe(
      '"a,b","say ""hi""","two\nlines"," x"\r\n',
    );
  });

  it('has lists and objects as JSON', () => {
    expect(renderCsvLine([{ a: 1 }, ['x']])).toBe(
      '"{""a"":1}",["x"]\r\n'.replace('["x"]', '"[""x""]"'),
    );
  });
});

describe('a text that a spreadsheet would run', () => {
  it.each([
    ['=1+1', "'=1+1"],
    ['+49 151', "'+49 151"],
    ['-2', "'-2"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['\t=1', "'\t'=1"],
    ['\r=1', "'\r'=1"],
    ['  =1', "'  =1"],
    ['＝1', "'＝1"],
    ['x;=1', "x;'=1"],
    ['x\n=1', "x\n'=1"],
    ['x\t@a', "x\t'@a"],
    ['x;  ＠a', "x;'  ＠a"],
    ['\u00A0＋1', "'\u00A0＋1"],
    ['－1', "'－1"],
    ["'=1", "''=1"],
    ["'' =1", "''' =1"],
    ["x;'-1", "x;''-1"],
  ])('%j is shown instead', (text, guarded) => {
    expect(guardFormulas(text)).toBe(guarded);
  });

  it.each(['Anna', 'a=b', '1 + 1', 'anna@example.com', '2026-03-01', "'Anna", "Rock 'n' roll", ''])(
    '%j stays',
    (text) => {
      expect(guardFormulas(text)).toBe(text);
    },
  );
});

describe('a guarded text', () => {
  it.each([
    '',
    'Anna',
    "'Anna",
    '@anna',
    "'@anna",
    "''@anna",
    '+49 151 2345678',
    ' =1',
    "' =1",
    '\t=1',
    "\t'=1",
    "'\t=1",
    '\r\n@a',
    ' \n=1',
    ";'\n=1",
    ";''\n'=1",
    "x;'=1;=2;''=3",
    '＝1\n＋2\t－3;＠4',
    "'",
    "';=",
    '="00123"',
  ])('%j is restored', (text) => {
    expect(unguardFormulas(guardFormulas(text))).toBe(text);
  });

  it('is restored whatever it is made of', () => {
    const parts = ["'", '=', '＠', ';', '\t', '\n', ' ', 'a'];
    const texts = Array.from({ length: parts.length ** 5 }, (_, i) =>
      [0, 1, 2, 3, 4]
        .map((at) => parts[Math.floor(i / parts.length ** at) % parts.length])
        .join(''),
    );
    expect(texts.filter((text) => unguardFormulas(guardFormulas(text)) !== text)).toEqual([]);
    expect(texts.filter((text) => guardFormulas(text) !== text).length).toBeGreaterThan(1000);
  });

  it('is changed once only', () => {
    expect(unguardFormulas("''=1")).toBe("'=1");
    expect(unguardFormulas("'Anna")).toBe("'Anna");
  });
});

it.each([
  ["'6543210987654", '6543210987654'],
  ["'00123", '00123'],
  ["'0171 1234567", '0171 1234567'],
  ["'17-05-1990", '17-05-1990'],
  ["'+4915112345678", '+4915112345678'],
  ['’00123', '00123'],
  ["'1990/05/17", '1990/05/17'],
  ["'t Hart", "'t Hart"],
  ["'s-Gravenhage", "'s-Gravenhage"],
  ["'90s Café", "'90s Café"],
  ["'", "'"],
  ["''00123", "'00123"],
])('reads %s, which a spreadsheet marks as text, as %s', (cell, text) => {
  expect(unguardFormulas(cell)).toBe(text);
});

it.each(["'123", "''123", '’123', "'17-05-1990", '123', "'t Hart", "'+1"])(
  'writes %s so that it is read back',
  (text) => {
    expect(unguardFormulas(guardFormulas(text))).toBe(text);
  },
);
