import { describe, expect, it } from '@jest/globals';
import { findDateOrder, parseBirthday } from './birthdays.js';

const column = (...texts: string[]) => texts.map((text, i) => ({ row: i + 2, text }));

describe('findDateOrder', () => {
  it.each([
    [['31/12/2000', '01/02/2000'], 'dmy'],
    [['01/02/2000', '12/31/2000'], 'mdy'],
    [['2000-12-31', '31.12.2000', '', '5/5/2000', '05/5/2000'], null],
    [['17-5-1990', '1990/05/17', '4-3-2000'], 'dmy'],
    [['05-17-1990', '1/2/2000'], 'mdy'],
    [['1990/05/17', '1990.05.17', '19900517'], null],
  ])('%j is %j', (texts, order) => {
    expect(findDateOrder(column(...texts))).toEqual({ order });
  });

  it('refuses a column that may be read either way, and names a row', () => {
    expect(findDateOrder(column('', '03/04/2000')).error?.message).toContain('row 3');
  });

  it('refuses a column that has both orders, and names a row of each', () => {
    const error = findDateOrder(column('31/12/2000', '12/31/2000')).error?.message;
    expect(error).toMatch(/day first in row 2 and the month first in row 3/);
  });
});

describe('parseBirthday', () => {
  it.each([
    ['2000-12-31', null, '2000-12-31'],
    ['2000-1-2', null, '2000-01-02'],
    ['2000-12-31 00:00:00', null, '2000-12-31'],
    ['31.12.2000', null, '2000-12-31'],
    ['1. 2. 2000', null, '2000-02-01'],
    ['01/02/2000', 'dmy', '2000-02-01'],
    ['01/02/2000', 'mdy', '2000-01-02'],
    ['5/5/2000', null, '2000-05-05'],
    ['17-5-1990', 'dmy', '1990-05-17'],
    ['17 - 05 - 1990', 'dmy', '1990-05-17'],
    ['17–5–1990', 'dmy', '1990-05-17'],
    ['05-17-1990', 'mdy', '1990-05-17'],
    ['5-5-1990', null, '1990-05-05'],
    ['3-4-1990', null, undefined],
    ['17-5/1990', 'dmy', undefined],
    ['1990/05/17', null, '1990-05-17'],
    ['1990/5/7', 'dmy', '1990-05-07'],
    ['1990.05.17', null, '1990-05-17'],
    ['1990. 05. 17.', null, '1990-05-17'],
    ['17.05.1990.', null, '1990-05-17'],
    ['1990年5月17日', null, '1990-05-17'],
    ['1990년 5월 17일', null, '1990-05-17'],
    ['１９９０／０５／１７', null, '1990-05-17'],
    ['\u200f17/05/1990', 'dmy', '1990-05-17'],
    ['19900517', null, '1990-05-17'],
    ['12345678', null, undefined],
    ['17/05/1990 00:00', 'dmy', '1990-05-17'],
    ['5/17/1990 12:00:00 AM', 'mdy', '1990-05-17'],
    ['17.05.1990 00:00:00', null, '1990-05-17'],
    ['1990-05-17T00:00:00.000Z', null, '1990-05-17'],
    ['1990-05-17T00:00:00+00:00', null, '1990-05-17'],
    ['1990/05/17 08:30', null, undefined],
    ['17-5-90', 'dmy', undefined],
    ['--05-17', null, undefined],
    ['03/04/2000', null, undefined],
    ['31.12.00', null, undefined],
    ['36891', null, undefined],
    ['31 December 2000', null, undefined],
    ['2000-12-31 08:30', null, undefined],
  ] as const)('%s in the order %s is %s', (text, order, day) => {
    expect(parseBirthday(text, order)).toBe(day);
  });
});
