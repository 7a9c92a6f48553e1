import { describe, expect, it } from '@jest/globals';
import { defuse, renderCsvLine } from './csv.js';

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
  ])('%j is shown instead', (text, defused) => {
    expect(defuse(text)).toBe(defused);
  });

  it.each(['Anna', 'a=b', '1 + 1', 'anna@example.com', '2026-03-01', ''])('%j stays', (text) => {
    expect(defuse(text)).toBe(text);
  });
});
