import { expect, it } from '@jest/globals';
import { renderRowsAsCsv } from './import-rows-csv.js';

const columns = [
  { name: 'A', field: null },
  { name: 'Phone', field: 'phone' as const },
];

const render = (data: Record<string, string> | null, errors: Record<string, string[]> | null) =>
  renderRowsAsCsv({ columns, separator: ',' }, [{ row: 2, status: 'failed', errors, data }]).split(
    '\r\n',
  )[1];

it('quotes separators, quotation marks and line ends', () => {
  expect(render({ A: 'a,"b"\nc', Phone: '' }, null)).toBe('"a,""b""\nc",,2,failed,');
});

it.each(['=1+1', '@SUM(1)', '+cmd|x', '-2+3', '＝1+1', '  =1'])(
  'guards %j as exports do',
  (text) => {
    expect(render({ A: text, Phone: '+49 151 (12)-3' }, null)).toBe(
      `'${text},'+49 151 (12)-3,2,failed,`,
    );
  },
);

it.each([
  ['x;=HYPERLINK("a")', `"x;'=HYPERLINK(""a"")"`],
  ['x\n@a', `"x\n'@a"`],
  ['\t=1', `"'\t'=1"`],
])('guards what comes after a separator or a line end in %j', (text, cell) => {
  expect(render({ A: text, Phone: '' }, null)).toBe(`${cell},,2,failed,`);
});

it('lists the errors, and leaves deleted cells empty', () => {
  expect(render(null, { base: ['Row 2 is odd'], phone: ['is short', 'is odd'] })).toBe(
    ',,2,failed,"Row 2 is odd; phone is short, is odd"',
  );
});
