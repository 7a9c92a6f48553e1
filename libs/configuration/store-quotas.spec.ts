import { describe, expect, it } from '@jest/globals';
import { parseQuotaChanges } from './store-quotas.js';

describe('parseQuotaChanges', () => {
  it('reads numbers and the word for the usual quota', () => {
    expect(parseQuotaChanges(['customers=5000', 'cards=default', 'sms_per_day=0'])).toEqual({
      changes: { customers: 5000, cards: null, sms_per_day: 0 },
    });
  });

  it.each(['customers', 'customers=', 'customers=-1', 'customers=1.5', 'stamps=1', 'cards=none'])(
    'names %s, which is no change of a quota',
    (text) => {
      expect(parseQuotaChanges(['cards=5', text])).toEqual({ invalid: text });
    },
  );

  it('refuses a number that is too large', () => {
    expect(parseQuotaChanges(['customers=1000000001'])).toEqual({
      invalid: 'customers=1000000001',
    });
  });
});
