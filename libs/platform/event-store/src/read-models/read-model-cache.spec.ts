import { describe, expect, it } from '@jest/globals';
import { KeptRows } from './read-model-cache.js';

const ofAccount = (accountId: number) => ({ row: { state: { accountId, note: '' } } });

function kept(...streams: string[]) {
  const rows = new KeptRows<ReturnType<typeof ofAccount>>();
  for (const stream of streams) rows.keep(stream, ofAccount(7));
  return rows;
}

describe('kept rows', () => {
  it('are found until they were stale', () => {
    const rows = kept('order-1');
    expect(rows.find('order-1')).toEqual(ofAccount(7));
    expect(rows.find('order-2')).toBeUndefined();
    rows.wasStale('order-1');
    expect(rows.find('order-1')).toBeUndefined();
  });

  it('are passed over for a while once one of the account was stale, and for no longer', () => {
    const rows = kept('order-1', 'order-2');
    rows.wasStale('order-1');
    for (let i = 0; i < 16; i++) expect(rows.find('order-2')).toBeUndefined();
    expect(rows.find('order-2')).toEqual(ofAccount(7));
  });

  it('are found again however often others were stale', () => {
    const rows = kept('order-2');
    for (let i = 0; i < 1_000; i++) {
      rows.keep('order-1', ofAccount(7));
      rows.wasStale('order-1');
    }
    for (let i = 0; i < 256; i++) expect(rows.find('order-2')).toBeUndefined();
    expect(rows.find('order-2')).toEqual(ofAccount(7));
  });

  it('of other accounts are found meanwhile', () => {
    const rows = kept('order-1');
    rows.keep('order-3', ofAccount(8));
    rows.wasStale('order-1');
    expect(rows.find('order-3')).toEqual(ofAccount(8));
  });

  it('are bounded in their size', () => {
    const rows = kept();
    const large = { row: { state: { accountId: 7, note: 'x'.repeat(1024 * 1024) } } };
    for (let i = 0; i < 20; i++) rows.keep(`order-${i}`, large);
    expect(rows.find('order-19')).toBe(large);
    expect(rows.find('order-0')).toBeUndefined();
  });
});
