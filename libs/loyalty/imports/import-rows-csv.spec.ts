import { expect, it } from '@jest/globals';
import type { FieldIssues } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';
import { renderRowsAsCsv } from './import-rows-csv.js';

const columns = [
  { name: 'A', field: null },
  { name: 'Phone', field: 'phone' as const },
];

const render = (cells: string[] | null, errors: FieldIssues | null = null) =>
  renderRowsAsCsv({ columns, separator: ',' }, [{ row: 2, state: 'failed', errors, cells }]).split(
    '\r\n',
  )[1];

it('quotes separators, quotation marks and line ends', () => {
  expect(render(['a,"b"\nc', ''])).toBe('"a,""b""\nc",,2,failed,');
});

it.each(['=1+1', '@SUM(1)', '+cmd|x', '-2+3', '＝1+1', '  =1'])(
  'guards %j as exports do',
  (text) => {
    expect(render([text, '+49 151 (12)-3'])).toBe(`'${text},'+49 151 (12)-3,2,failed,`);
  },
);

it.each([
  ['x;=HYPERLINK("a")', `"x;'=HYPERLINK(""a"")"`],
  ['x\n@a', `"x\n'@a"`],
  ['\t=1', `"'\t'=1"`],
])('guards what comes after a separator or a line end in %j', (text, cell) => {
  expect(render([text, ''])).toBe(`${cell},,2,failed,`);
});

it('lists the errors, and leaves deleted cells empty', () => {
  const errors = {
    base: [ISSUES.row_repeated({ row: 7 })],
    phone: [ISSUES.not_phone_number, ISSUES.still_quoted],
  };
  expect(render(null, errors)).toBe(
    ',,2,failed,"Row 7 is about the same customer; phone is not a phone number; phone is still in quotation marks"',
  );
});
