import { describe, expect, it } from '@jest/globals';
import type { CustomerImport } from '#loyalty/imports/customer-import.js';
import { getTranslations } from '#translations/translations.js';
import { describeStart, listColumnFields, listCounts, readMapping } from './import-page.js';

const english = getTranslations('en');
const counts = { done: 5, created: 3, updated: 1, unchanged: 0, failed: 1, undone: 0, refused: 0 };
const columns: CustomerImport['columns'] = [
  { name: 'Mail', field: 'email' },
  { name: 'Note', field: null },
];
const coffee = { text: 'Coffee', welcomeStamps: 0 };
const ready = { state: 'ready', counts, rowsTotal: 5, columns } as CustomerImport;

describe('the page of an import', () => {
  it('says what a start would do', () => {
    expect(describeStart(ready, undefined, english)).toEqual({
      text: '4 rows will be imported. 1 row with errors will be left out.',
      canStart: true,
    });
    const partly = { ...counts, updated: 0, created: 1, unchanged: 3 };
    expect(describeStart({ ...ready, counts: partly }, coffee, english).text).toBe(
      '1 row will be imported. Everyone gets the card “Coffee”. 3 rows change nothing. 1 row with errors will be left out.',
    );
    expect(describeStart(ready, { ...coffee, welcomeStamps: 1 }, english).text).toContain(
      'Each new card begins with 1 welcome stamp, on top of those in the file.',
    );
    const none = { ...counts, created: 0, updated: 0 };
    const useless = [
      { ...none, failed: 5 },
      { ...none, failed: 2, unchanged: 3 },
    ].map((different) => describeStart({ ...ready, counts: different }, coffee, english));
    expect(useless).toEqual([
      { text: 'There is nothing to import: every row has an error.', canStart: false },
      {
        text: '3 rows change nothing. 2 rows with errors will be left out.',
        canStart: false,
      },
    ]);
  });

  it('leaves out counts of nothing', () => {
    expect(listCounts(ready, english).map(({ label, value }) => `${label} ${value}`)).toEqual([
      'Rows 5',
      'New customers 3',
      'Customers you already have 1',
      'With errors 1',
    ]);
  });

  it('shows columns with examples, and reads what is chosen for them', () => {
    const rows = [{ Mail: 'a@example.com', Note: '' }, null, { Mail: 'b@example.com' }];
    expect(listColumnFields(columns, rows as never, english.t.transfers)).toEqual([
      {
        name: 'column_0',
        label: 'Mail',
        value: 'email',
        hint: 'For example a@example.com, b@example.com',
      },
      { name: 'column_1', label: 'Note', value: '', hint: 'Empty in the first rows' },
    ]);
    expect(readMapping(columns, { column_0: '', column_1: 'phone' })).toEqual({
      Mail: null,
      Note: 'phone',
    });
    expect(readMapping(columns, { column_1: 'nonsense' })).toEqual({ Mail: 'email', Note: null });
  });
});
