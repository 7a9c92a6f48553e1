import { describe, expect, it } from '@jest/globals';
import { KeptRows } from './kept-rows.js';

const ofStore = (accountId: number) => ({ row: { state: { accountId, note: '' } } });

function kept(...streams: string[]) {
  const rows = new KeptRows<ReturnType<typeof ofStore>>();
  for (const stream of streams) rows.keep(stream, ofStore(7));
  return rows;
}

describe('kept rows', () => {
  it('are found until they were stale', () => {
    const rows = kept('customer_card-1');
    expect(rows.find('customer_card-1')).toEqual(ofStore(7));
    expect(rows.find('customer_card-2')).toBeUndefined();
    rows.wasStale('customer_card-1');
    expect(rows.find('customer_card-1')).toBeUndefined();
  });

  it('are passed over for a while once one of the store was stale, and for no longer', () => {
    const rows = kept('customer_card-1', 'customer_card-2');
    rows.wasStale('customer_card-1');
    for (let i = 0; i < 16; i++) expect(rows.find('customer_card-2')).toBeUndefined();
    expect(rows.find('customer_card-2')).toEqual(ofStore(7));
  });

  it('are found again however often others were stale', () => {
    const rows = kept('customer_card-2');
    for (let i = 0; i < 1_000; i++) {
      rows.keep('customer_card-1', ofStore(7));
      rows.wasStale('customer_card-1');
    }
    for (let i = 0; i < 256; i++) expect(rows.find('customer_card-2')).toBeUndefined();
    expect(rows.find('customer_card-2')).toEqual(ofStore(7));
  });

  it('of other stores are found meanwhile', () => {
    const rows = kept('customer_card-1');
    rows.keep('customer_card-3', ofStore(8));
    rows.wasStale('customer_card-1');
    expect(rows.find('customer_card-3')).toEqual(ofStore(8));
  });

  it('are bounded in their size', () => {
    const rows = kept();
    const large = { row: { state: { accountId: 7, note: 'x'.repeat(1024 * 1024) } } };
    for (let i = 0; i < 20; i++) rows.keep(`customer_card-${i}`, large);
    expect(rows.find('customer_card-19')).toBe(large);
    expect(rows.find('customer_card-0')).toBeUndefined();
  });
});
